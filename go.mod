module github.com/weir-data/weir

go 1.26.0

require (
	github.com/RoaringBitmap/roaring/v2 v2.30.0
	github.com/apache/arrow-go/v18 v18.8.0
	github.com/bits-and-blooms/bitset v1.24.4
	github.com/cpuguy83/go-md2man/v2 v2.0.7
	github.com/duckdb/duckdb-go-bindings v0.10506.0
	github.com/duckdb/duckdb-go-bindings/lib/darwin-amd64 v0.10506.0
	github.com/duckdb/duckdb-go-bindings/lib/darwin-arm64 v0.10506.0
	github.com/duckdb/duckdb-go-bindings/lib/linux-amd64 v0.10506.0
	github.com/duckdb/duckdb-go-bindings/lib/linux-arm64 v0.10506.0
	github.com/duckdb/duckdb-go-bindings/lib/windows-amd64 v0.10506.0
	github.com/duckdb/duckdb-go/v2 v2.10506.0
	github.com/go-viper/mapstructure/v2 v2.5.0
	github.com/goccy/go-json v0.10.6
	github.com/goccy/go-yaml v1.19.2
	github.com/google/flatbuffers v25.12.19+incompatible
	github.com/google/uuid v1.6.0
	github.com/klauspost/compress v1.20.4
	github.com/klauspost/cpuid/v2 v2.4.0
	github.com/mschoch/smat v0.2.0
	github.com/pierrec/lz4/v4 v4.1.29
	github.com/rogpeppe/go-internal v1.16.0
	github.com/russross/blackfriday/v2 v2.1.0
	github.com/tetratelabs/wazero v1.12.0
	github.com/urfave/cli/v2 v2.27.7
	github.com/xrash/smetrics v0.0.0-20240521201337-686a1a2994c1
	github.com/zeebo/xxh3 v1.1.0
	go.uber.org/goleak v1.3.0
	golang.org/x/exp v0.0.0-20260112195511-716be5621a96
	golang.org/x/sync v0.25.0
	golang.org/x/sys v0.50.0
	golang.org/x/term v0.48.0
	gopkg.in/yaml.v3 v3.0.1
)

require github.com/weir-data/weir/sdk/go v0.0.0

replace github.com/weir-data/weir/sdk/go => ./sdk/go
