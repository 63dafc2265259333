package delta

import (
	"encoding/json"
	"maps"
)

// commitInfo tells what the commit did, for people and for other writers.
func (x *transaction) commitInfo(a *attempt) *CommitInfo {
	c := x.commit
	blind := len(a.actions.removes) == 0 && !c.Rearranges && !c.Reads.Table && c.Reads.Where == nil
	info := &CommitInfo{
		Timestamp: a.now.UnixMilli(), Operation: c.operation(), OperationParameters: map[string]any{}, IsolationLevel: "WriteSerializable",
		IsBlindAppend: &blind, UserMetadata: c.UserMetadata, EngineInfo: c.EngineInfo, TxnID: a.txnID,
	}
	switch {
	case c.Rearranges:
		info.IsolationLevel = "SnapshotIsolation"
	case x.serializable:
		info.IsolationLevel = "Serializable"
	}
	if a.base != nil {
		v := a.base.version
		info.ReadVersion = &v
	}
	// Spark reads the parameters and metrics as a map of strings.
	for k, v := range c.Parameters {
		if s, ok := asString(v); ok {
			info.OperationParameters[k] = s
		}
	}
	info.OperationMetrics = a.metrics(c)
	return info
}

func (a *attempt) metrics(c *Commit) map[string]any {
	var rows, size int64
	counted := true
	for i := range c.Add {
		n, ok := c.Add[i].NumRecords()
		counted = counted && ok
		rows += n
		size += c.Add[i].Size
	}
	rewritten := len(a.actions.removes)
	out := map[string]any{"numFiles": itoa(int64(len(c.Add))), "numOutputBytes": itoa(size)}
	if counted {
		out["numOutputRows"] = itoa(rows)
	}
	if len(c.Delete) > 0 {
		// A file that only gets another vector is not removed.
		rewritten -= int(a.deleted.vectorsAdded)
		out["numDeletedRows"] = itoa(a.deleted.rows)
		out["numDeletionVectorsAdded"] = itoa(a.deleted.vectorsAdded)
		out["numDeletionVectorsUpdated"] = itoa(a.deleted.vectorsUpdated)
		out["numDeletionVectorsRemoved"] = itoa(a.deleted.vectorsRemoved)
	}
	out["numRemovedFiles"] = itoa(int64(rewritten))
	if len(c.ChangeData) > 0 {
		out["numAddedChangeFiles"] = itoa(int64(len(c.ChangeData)))
	}
	given := maps.Clone(c.Metrics)
	for k, v := range given {
		if s, ok := asString(v); ok {
			out[k] = s
		}
	}
	return out
}

func asString(v any) (string, bool) {
	if s, ok := v.(string); ok {
		return s, true
	}
	raw, err := json.Marshal(v)
	return string(raw), err == nil
}
