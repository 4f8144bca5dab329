package sim

import "vigil/core"

// Observer sees every record of a run, the cores' claims and the world's
// truth, in order. It must copy what it keeps.
type Observer interface {
	Observe(r *core.Record)
}
