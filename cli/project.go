package cli

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/pipeline"
)

// projectFlags are the flags of every verb that reads a project.
func projectFlags(more ...cli.Flag) []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "spec", Aliases: []string{"f"}, Usage: "the spec `FILE` or its folder (default: weir.yaml here or above)"},
		&cli.StringSliceFlag{Name: "conf", Usage: "set a configuration value, `KEY=VALUE` (may be repeated)"},
	}, more...)
}

// loadSpec reads the spec that the flags name.
func loadSpec(c *cli.Context) (*pipeline.Spec, error) {
	overrides := map[string]string{}
	for _, kv := range c.StringSlice("conf") {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, wrongUsage(fault.New("INVALID_ARGUMENT", "--conf %q is not KEY=VALUE", kv))
		}
		overrides[k] = v
	}
	spec, err := pipeline.LoadSpec(c.String("spec"), overrides)
	if err != nil {
		return nil, wrongUsage(err)
	}
	// Everything the command prints from here on goes past the secrets.
	c.App.Writer = spec.Redactor().Writer(c.App.Writer)
	c.App.ErrWriter = spec.Redactor().Writer(c.App.ErrWriter)
	return spec, nil
}

// withPipeline opens the project's pipeline, hands it to use and closes it.
// What is wrong before use runs is the project's fault.
func withPipeline(c *cli.Context, use func(context.Context, *pipeline.Pipeline) error) error {
	return withOptions(c, pipeline.Options{}, use)
}

// withTolerant does so with a project that has flaws, too.
func withTolerant(c *cli.Context, use func(context.Context, *pipeline.Pipeline) error) error {
	return withOptions(c, pipeline.Options{Tolerant: true}, use)
}

func withOptions(c *cli.Context, opts pipeline.Options, use func(context.Context, *pipeline.Pipeline) error) error {
	spec, err := loadSpec(c)
	if err != nil {
		return err
	}
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	limit, err := memoryLimit(c)
	if err != nil {
		return err
	}
	opts.CacheDir, opts.Logger, opts.MemoryLimit = cache, logger(c), limit
	ctx := c.Context
	p, err := pipeline.Open(ctx, spec, opts)
	if err != nil {
		return wrongUsage(err)
	}
	err = use(ctx, p)
	if closeErr := p.Close(context.WithoutCancel(ctx)); err == nil {
		err = closeErr
	}
	return err
}

// memoryFlag bounds the memory of everything the command computes.
func memoryFlag() cli.Flag {
	return &cli.StringFlag{Name: "memory-limit", Usage: "use at most so much memory, a `SIZE` such as 2GiB (default: the spec's memory_limit, else most of the machine)"}
}

// memoryLimit reads that flag; 0 leaves it to the spec.
func memoryLimit(c *cli.Context) (int64, error) {
	text := c.String("memory-limit")
	if text == "" {
		return 0, nil
	}
	limit, err := pipeline.ParseMemoryLimit(text)
	return limit, wrongUsage(err)
}

// cacheDir is the folder of what can be rebuilt.
func cacheDir() (string, error) {
	if dir := os.Getenv("WEIR_CACHE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fault.Wrap(err, "NO_CACHE_DIR", "there is no folder for caches").WithHint("Set WEIR_CACHE_DIR")
	}
	return filepath.Join(dir, "weir"), nil
}

// logger writes human text to a terminal and JSON elsewhere; WEIR_LOG sets the
// level and is "warn" unless set.
func logger(c *cli.Context) *slog.Logger {
	level, v := slog.LevelWarn, os.Getenv("WEIR_LOG")
	var bad error
	if v != "" {
		bad = level.UnmarshalText([]byte(v))
	}
	opts := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewJSONHandler(c.App.ErrWriter, opts)
	if isTerminal(c.App.ErrWriter) {
		handler = slog.NewTextHandler(c.App.ErrWriter, opts)
	}
	log := slog.New(handler)
	if bad != nil {
		log.Warn("WEIR_LOG names no level; the log is at warn. Use debug, info, warn or error", "value", v)
	}
	return log
}
