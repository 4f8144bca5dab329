package zmq

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Why this file: an ipc endpoint is a file, and its permissions are all that
// keeps other users of the host out.

// maxIPCPath is what fits a Unix socket's address.
const maxIPCPath = 107

// ipcPath returns the file of an ipc endpoint, "" for another transport.
func ipcPath(endpoint string) string {
	path, _ := strings.CutPrefix(endpoint, "ipc://")
	if path == endpoint {
		return ""
	}
	return path
}

// prepareIPC makes room for a socket file: its folder is made, for this user
// alone, where there is none; a socket that nobody listens on any more, left by
// a killed server, is removed. libzmq itself would take the place of one that
// is in use.
func prepareIPC(path string) error {
	switch {
	case path == "" || path == "*":
		return errors.New("zmq: an ipc endpoint needs a file, such as ipc:///run/vigil/socket")
	case path[0] == '@':
		return fmt.Errorf("zmq: ipc://%s is an abstract socket, which any user of the host can connect to; use a file", path)
	case len(path) > maxIPCPath:
		return fmt.Errorf("zmq: ipc://%s: the path has %d bytes, at most %d fit a socket", path, len(path), maxIPCPath)
	}
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("zmq: ipc://%s: %w; make the folder above it first", path, err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("zmq: ipc://%s: %w", path, err)
	}
	if info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("zmq: ipc://%s: other users can write to %s and could put their own socket there; chmod go-w it", path, dir)
	}
	info, err = os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("zmq: ipc://%s: %w", path, err)
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("zmq: ipc://%s: the file is there and is not a socket; remove it or choose another", path)
	}
	switch c, err := net.DialTimeout("unix", path, time.Second); {
	case err == nil:
		c.Close()
		return fmt.Errorf("zmq: ipc://%s: another server listens there; stop it or choose another path", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("zmq: ipc://%s: removing the socket of a server that is gone: %w", path, err)
		}
	case errors.Is(err, fs.ErrNotExist):
	default:
		return fmt.Errorf("zmq: ipc://%s: it cannot be told whether the socket is in use: %w", path, err)
	}
	return nil
}

// socketFile is the file of a bound ipc endpoint.
type socketFile struct {
	path string
	info fs.FileInfo
}

// secureIPC lets in this user alone. Until it ran, the process's umask decides;
// with the usual ones nobody else may write, which is what connecting needs.
func secureIPC(path string) (f socketFile, err error) {
	if err = os.Chmod(path, 0o600); err == nil {
		f.path = path
		f.info, err = os.Lstat(path)
	}
	if err != nil {
		return f, fmt.Errorf("zmq: ipc://%s: %w", path, err)
	}
	return f, nil
}

// remove takes the file away, which libzmq does not, unless it is another
// server's by now.
func (f *socketFile) remove() {
	if info, err := os.Lstat(f.path); err == nil && os.SameFile(info, f.info) {
		os.Remove(f.path)
	}
}
