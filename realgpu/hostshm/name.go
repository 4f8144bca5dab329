package hostshm

import "fmt"

// Why this file: a segment's name comes from a stranger and ends in a path.

// MaxName bounds a segment's name in bytes, the slash included: NAME_MAX of
// the file system below.
const MaxName = 255

// CheckName says what is wrong with a segment's name: it must be a slash and
// then letters, digits, '.', '_' or '-', must not contain "..", and must not
// begin with a dot. POSIX leaves more open; every name that real workers and
// ours make fits, and nothing that fits can leave the folder of the segments.
func CheckName(name string) error {
	if len(name) < 2 || name[0] != '/' {
		return fmt.Errorf("shared memory name %q must be a slash and a name, such as /vigil_1", clip(name))
	}
	if len(name) > MaxName {
		return fmt.Errorf("shared memory name %q must have at most %d bytes; it has %d", clip(name), MaxName, len(name))
	}
	if name[1] == '.' {
		return fmt.Errorf("shared memory name %q must not begin with a dot", name)
	}
	for i := 1; i < len(name); i++ {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		case c == '.' && name[i-1] != '.':
		case c == '.':
			return fmt.Errorf("shared memory name %q must not contain \"..\"", name)
		default:
			return fmt.Errorf("shared memory name %q must be of letters, digits, '.', '_' and '-'; byte %d is %q", name, i, c)
		}
	}
	return nil
}

// clip keeps a stranger's name from flooding a log line.
func clip(name string) string {
	if len(name) > 80 {
		return name[:80] + "..."
	}
	return name
}
