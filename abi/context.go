package abi

import (
	"encoding/json"
	"time"
)

// TimeLayout is how the batch timestamp is written: RFC 3339 in UTC with microseconds.
const TimeLayout = "2006-01-02T15:04:05.000000Z"

// CallContext is what context_read gives a guest.
type CallContext struct {
	Pipeline       string
	UpdateID       string
	Flow           string
	BatchID        int64
	Task           int
	FullRefresh    bool
	BatchTimestamp time.Time
	LatestVersion  *Version // snapshot providers; nil before the first snapshot
}

// JSON gives the context as a guest reads it.
func (c CallContext) JSON() ([]byte, error) {
	return json.Marshal(struct {
		Pipeline       string   `json:"pipeline"`
		UpdateID       string   `json:"update_id"`
		Flow           string   `json:"flow"`
		BatchID        int64    `json:"batch_id"`
		Task           int      `json:"task"`
		FullRefresh    bool     `json:"full_refresh"`
		BatchTimestamp string   `json:"batch_timestamp"`
		LatestVersion  *Version `json:"latest_version,omitempty"`
	}{c.Pipeline, c.UpdateID, c.Flow, c.BatchID, c.Task, c.FullRefresh, c.BatchTimestamp.UTC().Format(TimeLayout), c.LatestVersion})
}
