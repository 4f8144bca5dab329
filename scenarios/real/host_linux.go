package real

import "syscall"

// Why this file: what only Linux can do for the processes of a run. Elsewhere
// simrun is built without it, for the simulator needs none of it.

// supported reports whether real processes can be played on this system.
const supported = true

// withParent has the kernel kill a process when simrun dies.
func withParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// hurryThread gives the calling thread, and what it starts, its priority.
func hurryThread() { syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), urgent) }
