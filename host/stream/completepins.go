package stream

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
)

// pin settles what the refresh reads: the versions of tables as they are now,
// and the files there are. last is the refresh before it, whose schema goes on
// for files that have not changed.
func (c *completion) pin(ctx context.Context, last *refreshEntry) (refreshPins, error) {
	var pins refreshPins
	for name, table := range c.q.Side {
		snap, err := snapshot(ctx, table)
		if err != nil {
			return pins, fault.Place(err, "DELTA_SOURCE_UNAVAILABLE", fault.Where{Dataset: name})
		}
		at := TableVersion{Version: -1}
		switch {
		case snap != nil:
			at = TableVersion{TableID: snap.Metadata().ID, Version: snap.Version()}
		case c.q.Absent[name] == nil:
			return pins, fault.New("TABLE_OR_VIEW_NOT_FOUND", "the table has not been made yet").At(fault.Where{Dataset: name})
		}
		if pins.Tables == nil {
			pins.Tables = map[string]TableVersion{}
		}
		pins.Tables[name] = at
	}
	for name, in := range c.q.Files {
		pin, err := in.list(ctx)
		if err != nil {
			return pins, err
		}
		if before, ok := last.files(name); ok && last.Fingerprint == c.q.Fingerprint && slices.Equal(before.Files, pin.Files) {
			pin.Schema = before.Schema
		} else if pin.Schema, err = in.infer(ctx, pin.Files); err != nil {
			return pins, err
		}
		if pins.Files == nil {
			pins.Files = map[string]filesPin{}
		}
		pins.Files[name] = pin
	}
	return pins, nil
}

func (e *refreshEntry) files(name string) (filesPin, bool) {
	if e == nil {
		return filesPin{}, false
	}
	pin, ok := e.Files[name]
	return pin, ok
}

// list gives the files there are, ascending by path.
func (f *FileInput) list(ctx context.Context) (filesPin, error) {
	var pin filesPin
	take := func(found []ingest.File) error {
		ready, err := f.Source.Complete(ctx, found)
		for _, file := range ready {
			pin.Files = append(pin.Files, InputFile(file))
		}
		return err
	}
	var found []ingest.File
	for file, err := range f.Source.List(ctx) {
		if err != nil {
			return pin, err
		}
		if found = append(found, file); len(found) == lookAhead {
			if err := take(found); err != nil {
				return pin, err
			}
			found = found[:0]
		}
	}
	err := take(found)
	slices.SortFunc(pin.Files, func(a, b InputFile) int { return strings.Compare(a.Path, b.Path) })
	return pin, err
}

// infer gives the schema that the files are read with.
func (f *FileInput) infer(ctx context.Context, files []InputFile) (json.RawMessage, error) {
	schema, err := f.Source.Infer(ctx, ingestFiles(files[:min(len(files), sampleFiles)]))
	if err != nil {
		return nil, err
	}
	return marshalSchema(schema)
}

func marshalSchema(s *ingest.Schema) (json.RawMessage, error) {
	text, err := ingest.MarshalSchema(s)
	if err != nil {
		return nil, err
	}
	// Records hold no blanks.
	return json.Marshal(json.RawMessage(text))
}

// settle tells the files' inputs which schema the refresh reads them with.
func (e *refreshEntry) settle(q *Refresh) error {
	for name, in := range q.Files {
		pin, ok := e.Files[name]
		if !ok {
			return fault.New("SOURCE_CHANGED", "the refresh was planned without the files of %s", name).
				WithHint("Run a full refresh of this table")
		}
		var err error
		if in.schema, err = ingest.UnmarshalSchema(pin.Schema); err != nil {
			return fault.Wrap(err, "CHECKPOINT_CORRUPT", "the schema of %s is not readable", name)
		}
	}
	return nil
}

// grow plans the refresh again, with every column that its files have; nil when
// no files have more.
func (c *completion) grow(ctx context.Context, e *refreshEntry) (*refreshEntry, error) {
	pins := refreshPins{Tables: e.Tables, Files: map[string]filesPin{}}
	var names []string
	for name, pin := range e.Files {
		src := fileSource{c.q.Files[name].Source}
		off := &sourceOffset{Kind: filesKind, Files: pin.Files}
		fields, err := src.evolve(ctx, off, readSchema{files: c.q.Files[name].schema}, c.mem)
		if err != nil {
			return nil, err
		}
		if fields != nil && fields.Evolved != nil {
			if pin.Schema, err = marshalSchema(fields.Evolved); err != nil {
				return nil, err
			}
			for _, f := range fields.Fields {
				names = append(names, f.Name)
			}
		}
		pins.Files[name] = pin
	}
	if len(names) == 0 {
		return nil, nil
	}
	c.res.NewColumns = append(c.res.NewColumns, names...)
	c.tell(Progress{Kind: SchemaEvolved, Batch: e.Refresh, NewColumns: names})
	return c.plan(ctx, pins, e.Reason)
}

// choose says whether to compute the table anew, and why.
func (c *completion) choose(ctx context.Context, last *refreshEntry, pins refreshPins) (Decision, error) {
	anew := func(r Reason, detail string) (Decision, error) {
		return Decision{CompleteRecompute, r, detail}, nil
	}
	if c.first == FullRefreshAsked {
		return anew(c.first, "")
	}
	if last == nil {
		return anew(FirstRefresh, "")
	}
	if c.target == nil {
		return anew(TargetChanged, "the table is gone")
	}
	commit, err := c.ck.commit(ctx, c.ck.committed)
	if err != nil {
		return Decision{}, err
	}
	at := TableVersion{TableID: commit.TableID, Version: commit.TargetVersion}
	if why, err := changedSince(ctx, c.flow.Target.Table, c.target, at); err != nil || why != "" {
		if err != nil {
			return Decision{}, err
		}
		return anew(TargetChanged, why)
	}
	if last.Fingerprint != c.q.Fingerprint {
		return anew(FingerprintChanged, "")
	}
	if why, err := c.sourceChanged(ctx, last, pins); err != nil || why != "" {
		if err != nil {
			return Decision{}, err
		}
		return anew(SourceDiffers, why)
	}
	if c.q.Volatile != "" {
		return anew(NonDeterministic, c.q.Volatile)
	}
	if c.q.Policy == FullRefreshPolicy {
		return anew(FullPolicy, "")
	}
	return Decision{NoOp, NoSourceChanged, ""}, nil
}

// sourceChanged says what of the inputs has other rows than the last refresh
// read; "" when nothing has.
func (c *completion) sourceChanged(ctx context.Context, last *refreshEntry, pins refreshPins) (string, error) {
	for name, now := range pins.Tables {
		was, ok := last.Tables[name]
		if !ok {
			return name, nil
		}
		if now == was {
			continue
		}
		if now.Version < 0 || was.Version < 0 {
			return name, nil
		}
		snap, err := c.q.Side[name].SnapshotAt(ctx, now.Version)
		if err != nil {
			return "", fault.Place(err, "DELTA_SOURCE_UNAVAILABLE", fault.Where{Dataset: name})
		}
		why, err := changedSince(ctx, c.q.Side[name], snap, was)
		if err != nil {
			return "", fault.Place(err, "DELTA_SOURCE_UNAVAILABLE", fault.Where{Dataset: name})
		}
		if why != "" {
			return name + ": " + why, nil
		}
	}
	for name, now := range pins.Files {
		was, ok := last.files(name)
		if !ok || !slices.Equal(was.Files, now.Files) {
			return "the files of " + name, nil
		}
	}
	return "", nil
}

// changedSince says what has become of a table since a version, as far as its
// rows and columns go: "" when commits only took care of it.
func changedSince(ctx context.Context, table *delta.Table, now *delta.Snapshot, since TableVersion) (string, error) {
	switch {
	case now.Metadata().ID != since.TableID:
		return "it was made again", nil
	case now.Version() < since.Version:
		return "it was set back to an older state", nil
	}
	for e, err := range table.Log(ctx, since.Version+1, now.Version()) {
		if fault.CodeOf(err) == "DELTA_LOG_GAP" {
			return "its log no longer tells", nil
		}
		if err != nil {
			return "", err
		}
		if why := changeOf(e); why != "" {
			return why, nil
		}
	}
	return "", nil
}

// changeOf says what a version changed for those who read the table.
func changeOf(e *delta.Entry) string {
	rows := slices.ContainsFunc(e.Adds, func(a delta.AddFile) bool { return a.DataChange }) ||
		slices.ContainsFunc(e.Removes, func(r delta.RemoveFile) bool { return r.DataChange })
	switch operation := operationOf(e); {
	case rows:
		return "version " + operation + " changed rows"
	case e.Metadata != nil:
		return "version " + operation + " changed the definition"
	}
	return ""
}
