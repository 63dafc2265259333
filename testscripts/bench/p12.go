package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const idleSQL = `CREATE OR REFRESH STREAMING TABLE bronze.orders AS SELECT * FROM STREAM read_files('landing/orders', format => 'json', schema => 'id BIGINT, city STRING');
CREATE OR REFRESH STREAMING TABLE bronze.sap_vbap AS SELECT * FROM STREAM read_files('landing/items', format => 'json',
  schema => 'VBELN STRING, POSNR STRING, NETWR DECIMAL(18,2), WAERK STRING, ERDAT DATE, change_type STRING, change_seq BIGINT');
CREATE OR REFRESH STREAMING TABLE silver.ecb_rates AS SELECT * FROM STREAM read_files('landing/rates', format => 'json', schema => 'rate_date DATE, currency STRING, rate DECIMAL(18,6)');
CREATE OR REFRESH STREAMING TABLE silver.orders AS SELECT id, upper(city) AS city FROM STREAM(bronze.orders);
CREATE OR REFRESH STREAMING TABLE silver.items AS SELECT * FROM STREAM(vbap_typed);
`

var idleLanding = map[string]string{
	"orders": `{"id":1,"city":"Kiel"}`,
	"items":  `{"VBELN":"1","POSNR":"10","NETWR":"10.00","WAERK":"EUR","ERDAT":"2024-10-11","change_type":"I","change_seq":1}`,
	"rates":  `{"rate_date":"2024-10-11","currency":"USD","rate":"1.0938"}`,
}

// runP12 measures a run with nothing to do: what it takes more than the start
// of the program, in milliseconds.
func runP12(ctx context.Context, dir string, s settings) ([]figure, error) {
	weir, err := filepath.Abs("build/weir")
	if err != nil {
		return nil, err
	}
	line := figure{Case: "five datasets, one of a Go plugin", Better: "lower", Must: 150, Aim: 50, Unit: "ms", Peer: "weir version"}
	if _, err := os.Stat(weir); err != nil {
		line.Skipped = "build/weir is not built (make build)"
		return []figure{line}, nil
	}
	wasm, err := buildGo(ctx, dir, "./plugins/sap")
	if err != nil {
		return nil, err
	}
	files := map[string]string{
		"weir.yaml": "name: idle\ncatalog: dev\nschema: bronze\nstorage: ./lake\nlibraries:\n  - glob: {include: idle.sql}\n" +
			"configuration: {sap.vbak_source: \"\"}\nplugins:\n  - path: sap.wasm\n    grants: {conf: [\"sap.*\"]}\n",
		"idle.sql": idleSQL, "sap.wasm": string(wasm),
	}
	for name, text := range idleLanding {
		files["landing/"+name+"/1.json"] = text + "\n"
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	command := func(args ...string) side {
		return side{run: func() error {
			cmd := exec.CommandContext(ctx, weir, args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "WEIR_CACHE_DIR="+filepath.Join(dir, "cache"))
			var text bytes.Buffer
			cmd.Stdout, cmd.Stderr = &text, &text
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("weir %v: %w\n%s", args, err, text.Bytes())
			}
			return nil
		}}
	}
	run, version := command("run"), command("version")
	if err := run.run(); err != nil { // brings the rows, and fills the caches
		return nil, err
	}
	a, b, err := race(3*s.repeats, run, version)
	if err != nil {
		return nil, err
	}
	line.Ours, line.Theirs = a.wall*1000, b.wall*1000
	line.Value = line.Ours - line.Theirs
	return []figure{line}, nil
}
