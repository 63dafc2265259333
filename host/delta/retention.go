package delta

import (
	"strconv"
	"strings"
	"time"
)

const (
	defaultCheckpointInterval = 10
	defaultTombstoneRetention = 7 * 24 * time.Hour
)

func (s *Snapshot) checkpointInterval() int64 {
	if n, err := strconv.ParseInt(s.metadata.Configuration["delta.checkpointInterval"], 10, 64); err == nil && n > 0 {
		return n
	}
	return defaultCheckpointInterval
}

// tombstoneRetention is how long a remove stays in checkpoints, for VACUUM to know the file.
func (s *Snapshot) tombstoneRetention() time.Duration {
	if d, ok := parseInterval(s.metadata.Configuration["delta.deletedFileRetentionDuration"]); ok {
		return d
	}
	return defaultTombstoneRetention
}

// expired tells whether a table with delta.setTransactionRetentionDuration need
// not keep a transaction any longer. It then drops out with the next checkpoint:
// who sets the property gives up that a batch is taken once after such a pause.
func (s *Snapshot) expired(txn Txn) bool {
	keep, ok := parseInterval(s.metadata.Configuration["delta.setTransactionRetentionDuration"])
	return ok && txn.LastUpdated != nil && *txn.LastUpdated < s.table.now().Add(-keep).UnixMilli()
}

// parseInterval reads "interval 1 week", "interval 2 days 3 hours".
func parseInterval(s string) (time.Duration, bool) {
	words := strings.Fields(strings.ToLower(s))
	if len(words) > 0 && words[0] == "interval" {
		words = words[1:]
	}
	if len(words) == 0 || len(words)%2 != 0 {
		return 0, false
	}
	units := map[string]time.Duration{
		"week": 7 * 24 * time.Hour, "day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second,
		"millisecond": time.Millisecond, "microsecond": time.Microsecond,
	}
	total := time.Duration(0)
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.ParseInt(words[i], 10, 32)
		unit, ok := units[strings.TrimSuffix(words[i+1], "s")]
		if err != nil || !ok || n < 0 {
			return 0, false
		}
		total += time.Duration(n) * unit
	}
	return total, true
}
