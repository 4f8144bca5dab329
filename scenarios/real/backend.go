package real

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Why this file: the same stories on device memory, over the stand-in driver
// (realgpu/standin). Each run has a world of devices of its own, in its folder.
//
// Over a real driver the truth about mappings is not in /proc, so no run there
// could be judged: scripts/device-check measures it there instead.

// checkBackend settles which memory is used.
func (o *Options) checkBackend() error {
	switch o.Backend {
	case "", "hostshm":
		o.Backend = "hostshm"
		if o.Library != "" {
			return errors.New("--cuda-library is for --backend cuda")
		}
		return nil
	case "cuda":
	default:
		return fmt.Errorf("--backend: there is no %q; there are hostshm and cuda", o.Backend)
	}
	path, err := filepath.Abs(o.Library)
	if err == nil && o.Library != "" {
		_, err = os.Stat(path)
	}
	if o.Library == "" || err != nil || !strings.Contains(filepath.Base(path), "standin") {
		return fmt.Errorf("--backend cuda is played over the stand-in driver: build it with scripts/standin and give --cuda-library bin/libcuda-standin.so (got %q); what a real driver does, scripts/device-check measures", o.Library)
	}
	o.Library = path
	return nil
}

// memoryArgs are the flags that give a process its memory.
func (o *Options) memoryArgs() []string {
	args := []string{"--backend", o.Backend}
	if o.Library != "" {
		args = append(args, "--cuda-library", o.Library)
	}
	return args
}

// watchArgs let the server watch the stand-in's devices too, where the library
// lies beside the driver's.
func (o *Options) watchArgs() []string {
	if o.Library == "" {
		return nil
	}
	return []string{"--nvml-library", filepath.Join(filepath.Dir(o.Library), "libnvidia-ml-standin.so")}
}

// environment is that of every process of a run.
func (p *play) environment() []string {
	env := p.options.environment()
	if p.options.Library != "" {
		env = append(env, "VIGIL_STANDIN_STATE="+filepath.Join(p.dir, "devices"))
	}
	return env
}
