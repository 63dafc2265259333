package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
	"github.com/weir-data/weir/host/storage"
)

var fpSchemaRecorded = failpoint.New("stream.schema_recorded")

// schemaOwner is the record that a schema location belongs to one flow.
type schemaOwner struct {
	Format int    `json:"format"`
	Flow   string `json:"flow"`
}

const schemaOwnerPath = "flow.json"

// schemaVersions are the versions of an inferred schema within one generation.
// Each names the batch that made it; a batch is read with the newest version
// made at or before it, so a replay sees what the batch saw.
type schemaVersions struct {
	store    storage.Store // rooted at the generation
	versions []*ingest.Schema
}

// openSchemas claims the location for the flow and reads the generation's versions.
func openSchemas(ctx context.Context, location storage.Store, flowID string, generation int) (*schemaVersions, error) {
	if err := claimSchemas(ctx, location, flowID); err != nil {
		return nil, err
	}
	v := &schemaVersions{store: storage.Sub(location, strconv.Itoa(generation))}
	for info, err := range v.store.List(ctx, "", storage.ListOptions{NamesOnly: true}) {
		if err != nil {
			return nil, unavailable(err)
		}
		n := len(v.versions)
		if info.Name != schemaPath(n) {
			continue
		}
		data, err := v.store.Get(ctx, info.Name)
		if err != nil {
			return nil, unavailable(err)
		}
		s, err := ingest.UnmarshalSchema(data)
		if err != nil {
			return nil, fault.Wrap(err, "CHECKPOINT_CORRUPT", "schema version %d is not readable", n)
		}
		v.versions = append(v.versions, s)
	}
	return v, nil
}

func claimSchemas(ctx context.Context, location storage.Store, flowID string) error {
	var owner schemaOwner
	_, err := location.Stat(ctx, schemaOwnerPath)
	switch {
	case errors.Is(err, storage.ErrNotExist):
		owner = schemaOwner{Format: 1, Flow: flowID}
		err := putRecord(ctx, location, schemaOwnerPath, owner)
		if err != nil && fault.CodeOf(err) != "CONCURRENT_UPDATE" {
			return err
		}
	case err != nil:
		return unavailable(err)
	}
	if err := getRecord(ctx, location, schemaOwnerPath, &owner); err != nil {
		return err
	}
	if owner.Flow != flowID {
		return fault.New("SCHEMA_LOCATION_SHARED", "the schema location belongs to the flow %s", owner.Flow).
			WithHint("Two streams that share one would merge their schemas; give each its own")
	}
	return nil
}

func schemaPath(version int) string { return fmt.Sprintf("%020d.json", version) }

// at gives the version that a batch is read with, nil when there is none yet.
func (v *schemaVersions) at(batch int64) *ingest.Schema {
	for i := len(v.versions) - 1; i >= 0; i-- {
		if v.versions[i].Batch <= batch {
			return v.versions[i]
		}
	}
	return nil
}

// record stores the next version, made by batch. A version that a crashed or
// losing writer left there is taken when it says the same.
func (v *schemaVersions) record(ctx context.Context, s *ingest.Schema, batch int64) (*ingest.Schema, error) {
	next := *s
	next.Version, next.Batch = len(v.versions), batch
	data, err := ingest.MarshalSchema(&next)
	if err != nil {
		return nil, err
	}
	name := schemaPath(next.Version)
	err = v.store.PutIfAbsent(ctx, name, data)
	if errors.Is(err, storage.ErrExist) {
		have, err := v.store.Get(ctx, name)
		if err != nil {
			return nil, unavailable(err)
		}
		if !bytes.Equal(have, data) {
			return nil, fault.New("CONCURRENT_UPDATE", "another run recorded schema version %d first", next.Version).
				WithHint("Let one update of a pipeline run at a time; then run again")
		}
	} else if err != nil {
		return nil, unavailable(err)
	}
	fpSchemaRecorded.Hit()
	v.versions = append(v.versions, &next)
	return &next, nil
}
