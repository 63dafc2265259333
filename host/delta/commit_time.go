package delta

import "maps"

// The properties that say since when a table has in-commit timestamps.
const (
	enablementVersionKey = "delta.inCommitTimestampEnablementVersion"
	enablementTimeKey    = "delta.inCommitTimestampEnablementTimestamp"
)

// planTimestamp gives the commit its in-commit timestamp when the table has
// them. It is later than that of the version before. The commit that enables
// them on a table with older versions says so in two properties, for those who
// look a version up by time.
func planTimestamp(a *attempt, p *Protocol, m *Metadata) {
	if !hasCommitTimestamps(p, m) {
		return
	}
	at := a.now.UnixMilli()
	if base := a.base; base != nil {
		at = max(at, base.time.UnixMilli()+1)
		if !hasCommitTimestamps(base.protocol, base.metadata) {
			at = max(at, base.modified.UnixMilli()+1)
			enabled := *m
			enabled.Configuration = maps.Clone(m.Configuration)
			enabled.Configuration[enablementVersionKey] = itoa(a.version)
			enabled.Configuration[enablementTimeKey] = itoa(at)
			a.actions.metadata = &enabled
		}
	}
	a.actions.info.InCommitTimestamp = &at
}

func hasCommitTimestamps(p *Protocol, m *Metadata) bool {
	return p.has("inCommitTimestamp") && isTrue(m, "delta.enableInCommitTimestamps")
}
