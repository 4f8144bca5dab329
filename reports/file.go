package reports

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile writes a whole file or leaves what was there: the bytes go to a
// temporary file beside it, which is renamed when they are on the disk. A run
// that is killed, or a full disk, never leaves half a report for a CI job to
// believe. Missing folders above it are made. What is there and is no regular
// file, such as a pipe or the null device, is written into: a rename would put a
// file in its place.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return writeInto(path, write)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder of %s: %w", path, err)
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, cause(err))
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("cannot write %s: %w", path, cause(err))
		}
	}()
	b := bufio.NewWriter(f)
	if err = write(b); err != nil {
		return err
	}
	if err = b.Flush(); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil { // a temporary file is the owner's alone; a report is not a secret
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// writeInto writes to what is there already.
func writeInto(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, cause(err))
	}
	b := bufio.NewWriter(f)
	if err := errors.Join(write(b), b.Flush(), f.Close()); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, cause(err))
	}
	return nil
}

// cause strips the temporary file's name, which nobody asked for.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}

// LinkLatest makes dir/latest name the newest result beside it. The link is
// made under another name and renamed, so that it is never absent. What is
// there and is no link is left alone, with an error.
func LinkLatest(dir, target string) error {
	link := filepath.Join(dir, "latest")
	if info, err := os.Lstat(link); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return fmt.Errorf("%s is not a link: move it away, so that it can name the latest result", link)
	}
	fresh := fmt.Sprintf("%s.%d", link, os.Getpid())
	os.Remove(fresh) // left by a run of the same pid that was killed here
	if err := os.Symlink(target, fresh); err != nil {
		return fmt.Errorf("cannot link %s: %w", link, cause(err))
	}
	if err := os.Rename(fresh, link); err != nil {
		os.Remove(fresh)
		return fmt.Errorf("cannot link %s: %w", link, cause(err))
	}
	return nil
}
