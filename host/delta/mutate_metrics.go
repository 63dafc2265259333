package delta

import "maps"

// metrics counts what the mutation did, by the names that Spark gives them for
// the operation. Readers of the change data feed skip a MERGE whose three row
// counts are all zero, so they must be right.
func (m *Mutation) metrics(c *Commit) map[string]any {
	out := map[string]any{}
	switch c.Operation {
	case "DELETE":
		out["numDeletedRows"], out["numCopiedRows"] = itoa(m.deleted), itoa(m.copied)
	case "UPDATE":
		out["numUpdatedRows"], out["numCopiedRows"] = itoa(m.updated), itoa(m.copied)
	case "WRITE":
		out["numOutputRows"], out["numDeletedRows"], out["numCopiedRows"] = itoa(m.inserted), itoa(m.deleted), itoa(m.copied)
	default:
		out["numTargetRowsInserted"], out["numTargetRowsUpdated"], out["numTargetRowsDeleted"] = itoa(m.inserted), itoa(m.updated), itoa(m.deleted)
		out["numTargetRowsCopied"], out["numOutputRows"] = itoa(m.copied), itoa(m.inserted+m.updated+m.copied)
	}
	if len(c.ChangeData) > 0 {
		out["numAddedChangeFiles"] = itoa(int64(len(c.ChangeData)))
	}
	maps.Copy(out, c.Metrics)
	return out
}
