package pipeline

import (
	"context"
	"path"
	"strconv"
	"strings"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/ingest"
	"github.com/weir-data/weir/host/storage"
)

// checkpoint is where a flow keeps its logs, schemas where it keeps the versions
// of its source's schema.
func (p *Pipeline) checkpoint(f *flow) storage.Store {
	return p.folder("checkpoints", f.target.id, f.name)
}

func (p *Pipeline) schemas(f *flow) storage.Store {
	return p.folder("schemas", f.target.id, f.name)
}

// recordedSchema gives the newest schema version that a run of the flow
// recorded for its file source, nil when there is none. Versions lie at
// <generation>/<version>.json.
func (p *Pipeline) recordedSchema(ctx context.Context, f *flow) (*ingest.Schema, error) {
	store := p.schemas(f)
	newest, generation, version := "", -1, -1
	for info, err := range store.List(ctx, "", storage.ListOptions{NamesOnly: true}) {
		if err != nil {
			return nil, err
		}
		g, errG := strconv.Atoi(path.Dir(info.Name))
		v, errV := strconv.Atoi(strings.TrimSuffix(path.Base(info.Name), ".json"))
		if errG != nil || errV != nil {
			continue // the record of whose the location is
		}
		if g > generation || (g == generation && v > version) {
			newest, generation, version = info.Name, g, v
		}
	}
	if newest == "" {
		return nil, nil
	}
	text, err := store.Get(ctx, newest)
	if err != nil {
		return nil, err
	}
	schema, err := ingest.UnmarshalSchema(text)
	if err != nil {
		return nil, fault.Wrap(err, "CHECKPOINT_CORRUPT", "the schema version %s is not readable", newest)
	}
	return schema, nil
}
