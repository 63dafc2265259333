package abi

import (
	"testing"
	"time"
)

func TestTheContextIsWrittenForGuests(t *testing.T) {
	zone := time.FixedZone("CEST", 2*3600)
	c := CallContext{Pipeline: "dwh", UpdateID: "u", Flow: "f", BatchID: 1, Task: 2, FullRefresh: true,
		BatchTimestamp: time.Date(2026, 7, 30, 8, 0, 0, 5000, zone), LatestVersion: &Version{Type: "date", Value: "2026-07-29"}}
	got, err := c.JSON()
	want := `{"pipeline":"dwh","update_id":"u","flow":"f","batch_id":1,"task":2,"full_refresh":true,"batch_timestamp":"2026-07-30T06:00:00.000005Z","latest_version":{"type":"date","value":"2026-07-29"}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

func TestLogLevelsHaveNames(t *testing.T) {
	for level, want := range map[LogLevel]string{LogDebug: "DEBUG", LogInfo: "INFO", LogWarn: "WARN", LogError: "ERROR"} {
		if level.String() != want {
			t.Errorf("%d is %s", level, level)
		}
	}
}
