package stream

import (
	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// NewDeltaSource makes the source of a flow that reads a Delta table as a
// stream: first the rows it holds, then what each further version adds.
func NewDeltaSource(name string, table *delta.Table, options map[string]string) (Source, error) {
	return nil, fault.New("NOT_SUPPORTED", "being written")
}
