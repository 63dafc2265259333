package main

import (
	"context"
	"fmt"
)

// runP1 measures the currency conversion of plugins/sap through the runtime,
// limits and metering on, against the same loop in Go over the same arrays.
// Both load the side table.
func runP1(ctx context.Context, dir string, s settings) ([]figure, error) {
	g, err := loadSAP(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer g.close(ctx)
	rates, err := rateTable()
	if err != nil {
		return nil, err
	}
	items, err := itemTable(s.scaled(64), batchRows)
	if err != nil {
		return nil, err
	}
	ours := func() error { return g.call(ctx, "vbap_typed", nil, items, rates) }
	a, b, err := race(s.repeats+2, side{run: ours}, side{run: func() error { return convertNative(items, rates) }})
	if err != nil {
		return nil, err
	}
	if err := s.profiled("P1", ours); err != nil {
		return nil, err
	}
	return []figure{figure{
		Case: fmt.Sprintf("%d rows in %d batches, %d rates", items.rows(), len(items.list), rates.rows()),
		Must: 0.25, Aim: 0.5, Peer: "the same loop in native Go (its speed is 1)",
	}.faster(a, b)}, nil
}

// loadSAP builds and loads plugins/sap.
func loadSAP(ctx context.Context, dir string) (guest, error) {
	wasm, err := buildGo(ctx, dir, "./plugins/sap")
	if err != nil {
		return guest{}, err
	}
	return loadGuest(ctx, dir, wasm, "sap")
}
