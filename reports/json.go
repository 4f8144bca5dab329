package reports

import (
	"bytes"
	"encoding/json"
	"io"
)

// WriteJSON writes any of this package's results as one indented object and a
// line end. Keys keep their order, so equal results are equal bytes.
func WriteJSON(w io.Writer, result any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // a message with < in it is read by people too
	e.SetIndent("", "  ")
	if err := e.Encode(result); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
