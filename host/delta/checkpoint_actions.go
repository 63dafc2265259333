package delta

import "github.com/weir-data/weir/host/fault"

// actions reads what is neither add nor remove: a few rows among many.
func (g *checkpointGroup) actions() (*commitActions, error) {
	out := &commitActions{}
	for _, read := range []func(*commitActions) error{g.protocol, g.metadata, g.txns, g.domains, g.sidecars} {
		if err := read(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// textRows finds the rows of an action by a string that it must have, and gives the strings.
func (g *checkpointGroup) textRows(path string) (rows actionRows, values []string, err error) {
	var col textColumn
	err = col.read(g, path)
	return col.rows, col.values, err
}

func (g *checkpointGroup) protocol(out *commitActions) error {
	col, err := g.values("protocol.minReaderVersion")
	if err != nil || col == nil {
		return err
	}
	var rows actionRows
	var found []Protocol
	err = col.longs(func(row int32, v int64) {
		if len(found) < 2 { // two are an error already
			rows, found = append(rows, row), append(found, Protocol{MinReaderVersion: int(v)})
		}
	})
	if err == nil {
		err = g.longs("protocol.minWriterVersion", rows, func(i int, v int64) { found[i].MinWriterVersion = int(v) })
	}
	if err == nil {
		err = g.lists("protocol.readerFeatures", rows, func(i int, v []string) { found[i].ReaderFeatures = v })
	}
	if err == nil {
		err = g.lists("protocol.writerFeatures", rows, func(i int, v []string) { found[i].WriterFeatures = v })
	}
	for i := range found {
		if err == nil {
			err = out.take(&action{Protocol: &found[i]})
		}
	}
	return err
}

func (g *checkpointGroup) metadata(out *commitActions) error {
	rows, schemas, err := g.textRows("metaData.schemaString")
	if err != nil || len(rows) == 0 {
		return err
	}
	if len(rows) > 1 {
		return fault.New("DELTA_INVALID_CHECKPOINT", "it has %d metaData actions", len(rows))
	}
	m := &Metadata{SchemaString: schemas[0], Format: Format{Options: map[string]string{}}}
	var options, configuration stringMaps
	for _, read := range []func() error{
		func() error { return g.texts("metaData.id", rows, func(_ int, v string) { m.ID = v }) },
		func() error { return g.texts("metaData.name", rows, func(_ int, v string) { m.Name = v }) },
		func() error {
			return g.texts("metaData.description", rows, func(_ int, v string) { m.Description = v })
		},
		func() error {
			return g.texts("metaData.format.provider", rows, func(_ int, v string) { m.Format.Provider = v })
		},
		func() error {
			return g.maps("metaData.format.options", rows, func(_ int, e []mapEntry) { m.Format.Options = options.of(e) })
		},
		func() error {
			return g.lists("metaData.partitionColumns", rows, func(_ int, v []string) { m.PartitionColumns = v })
		},
		func() error {
			return g.maps("metaData.configuration", rows, func(_ int, e []mapEntry) { m.Configuration = configuration.of(e) })
		},
		func() error {
			return g.longs("metaData.createdTime", rows, func(_ int, v int64) { m.CreatedTime = &v })
		},
	} {
		if err := read(); err != nil {
			return err
		}
	}
	if m.Configuration == nil {
		m.Configuration = map[string]string{}
	}
	return out.take(&action{Metadata: m})
}

func (g *checkpointGroup) txns(out *commitActions) error {
	rows, apps, err := g.textRows("txn.appId")
	if err != nil || len(rows) == 0 {
		return err
	}
	found := make([]Txn, len(rows))
	for i, app := range apps {
		found[i].AppID = app
	}
	err = g.longs("txn.version", rows, func(i int, v int64) { found[i].Version = v })
	if err == nil {
		err = g.longs("txn.lastUpdated", rows, func(i int, v int64) { found[i].LastUpdated = &v })
	}
	out.txns = found
	return err
}

func (g *checkpointGroup) domains(out *commitActions) error {
	rows, names, err := g.textRows("domainMetadata.domain")
	if err != nil || len(rows) == 0 {
		return err
	}
	found := make([]DomainMetadata, len(rows))
	for i, name := range names {
		found[i].Domain = name
	}
	err = g.texts("domainMetadata.configuration", rows, func(i int, v string) { found[i].Configuration = v })
	if err == nil {
		err = g.bools("domainMetadata.removed", rows, func(i int, v bool) { found[i].Removed = v })
	}
	out.domains = found
	return err
}

func (g *checkpointGroup) sidecars(out *commitActions) error {
	rows, paths, err := g.textRows("sidecar.path")
	if err != nil || len(rows) == 0 {
		return err
	}
	found := make([]sidecar, len(rows))
	for i, path := range paths {
		found[i].Path = path
	}
	err = g.longs("sidecar.sizeInBytes", rows, func(i int, v int64) { found[i].SizeInBytes = v })
	if err == nil {
		err = g.longs("sidecar.modificationTime", rows, func(i int, v int64) { found[i].ModificationTime = v })
	}
	out.sidecars = found
	return err
}

// takeAll takes the actions of another part in.
func (c *commitActions) takeAll(part *commitActions) error {
	if part.protocol != nil {
		if err := c.take(&action{Protocol: part.protocol}); err != nil {
			return err
		}
	}
	if part.metadata != nil {
		if err := c.take(&action{Metadata: part.metadata}); err != nil {
			return err
		}
	}
	c.txns = append(c.txns, part.txns...)
	c.domains = append(c.domains, part.domains...)
	c.sidecars = append(c.sidecars, part.sidecars...)
	return nil
}
