package cli

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
)

// travelFlags name an older version of a table.
func travelFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Int64Flag{Name: "version", Usage: "the table at version `N`"},
		&cli.StringFlag{Name: "timestamp", Usage: "the table as it was at the time `T`, as 2026-11-30T13:45:00Z or 2026-11-30; UTC where no zone stands"},
	}
}

// snapshotOf gives the version that the flags name, or the newest.
func snapshotOf(ctx context.Context, c *cli.Context, t *delta.Table) (*delta.Snapshot, error) {
	at, err := timeFlag(c, "timestamp")
	switch {
	case err != nil:
		return nil, err
	case c.IsSet("version") && c.IsSet("timestamp"):
		return nil, wrongUsage(fault.New("INVALID_ARGUMENT", "--version and --timestamp name two versions").WithHint("Give one of them"))
	case c.IsSet("version"):
		return t.SnapshotAt(ctx, c.Int64("version"))
	case c.IsSet("timestamp"):
		return t.SnapshotAsOf(ctx, at)
	}
	return t.Snapshot(ctx)
}

// timeFlag reads a time; the zero time is none.
func timeFlag(c *cli.Context, name string) (time.Time, error) {
	text := c.String(name)
	if !c.IsSet(name) {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil && !at.IsZero() {
			return at, nil
		}
	}
	return time.Time{}, wrongUsage(fault.New("INVALID_ARGUMENT", "--%s %q is no time", name, text).
		WithHint("Write it as 2026-11-30T13:45:00Z, or as a date"))
}
