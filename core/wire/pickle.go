package wire

import "vigil/core"

// pickled reads one pickled wrapper.
func (c *cursor) pickled(e *core.Export, shapes *[]int64) {
	c.bad("is a pickle, which is not read yet")
}
