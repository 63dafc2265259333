package delta

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// checkpointStats says in which forms a checkpoint holds statistics.
type checkpointStats struct {
	json bool // as the string that the commits have
}

// checkpointStats reads the properties that choose the forms.
func (s *Snapshot) checkpointStats() *checkpointStats {
	return &checkpointStats{
		json: !strings.EqualFold(s.metadata.Configuration["delta.checkpoint.writeStatsAsJson"], "false"),
	}
}

// fields are those of the add action behind its own.
func (c *checkpointStats) fields() []arrow.Field { return nil }

// append fills them for one file.
func (c *checkpointStats) append(_ *actionRow, _ *AddFile) {}
