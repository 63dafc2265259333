package stream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-data/weir/host/delta"
	"github.com/weir-data/weir/host/failpoint"
	"github.com/weir-data/weir/host/storage"
)

var fpGenerationCreated = failpoint.New("stream.generation_created")

// generation is the record that starts one generation of a flow: its logs lie
// beside it, and its number is part of the transaction id.
type generation struct {
	Format     int    `json:"format"`
	Generation int    `json:"generation"`
	AppID      string `json:"app_id"`
	Replace    bool   `json:"replace"` // the first commit replaces the target's rows; in a complete refresh each does
	// Kind is the kind of flow that the generation belongs to.
	Kind generationKind `json:"kind,omitempty"`
	// Applies says that its rows are merged into the target and not appended.
	Applies bool `json:"applies,omitempty"`
	// Reset is the last reset of the table that the generation knows of.
	Reset    *int64    `json:"reset,omitempty"`
	UpdateID string    `json:"update_id"`
	Created  time.Time `json:"created"`
}

// flowID names the flow across its generations.
func (f *Flow) flowID() string { return f.Pipeline + "/" + f.Dataset + "/" + f.Name }

// appID is the transaction id of one generation in the logs of the tables it writes.
func (f *Flow) appID(generation int) string { return appID(f.flowID(), generation) }

func appID(flowID string, generation int) string {
	return flowID + "/" + strconv.Itoa(generation)
}

func (t *Task) appID() string {
	return appID(t.Pipeline+"/"+t.Dataset+"/"+t.Flow, t.Generation)
}

// taskName is the stem of a task's files: who wrote them, in which batch.
func taskName(appID string, batch int64, task int) string {
	sum := sha256.Sum256([]byte(appID))
	return fmt.Sprintf("%s-%d-%d", hex.EncodeToString(sum[:8]), batch, task)
}

func generationPath(n int) string { return strconv.Itoa(n) + "/generation.json" }

// newestGeneration gives the last generation there is, and false when the
// flow has none. Older ones may have been cleaned away.
func newestGeneration(ctx context.Context, store storage.Store) (generation, bool, error) {
	numbers, err := generationNumbers(ctx, store)
	if err != nil || len(numbers) == 0 {
		return generation{}, false, err
	}
	newest := slices.Max(numbers)
	var g generation
	if err := getRecord(ctx, store, generationPath(newest), &g); err != nil {
		return generation{}, false, err
	}
	if g.Generation != newest || g.Format != 1 {
		return generation{}, false, foreignFormat(generationPath(newest), g.Format)
	}
	return g, true, nil
}

// generationNumbers lists the folders that have a generation record. Each
// folder costs one step, however many entries are in it.
func generationNumbers(ctx context.Context, store storage.Store) ([]int, error) {
	var numbers []int
	for after := ""; ; {
		folder := ""
		for info, err := range store.List(ctx, "", storage.ListOptions{NamesOnly: true, After: after}) {
			if err != nil {
				return nil, unavailable(err)
			}
			folder, _, _ = strings.Cut(info.Name, "/")
			break
		}
		if folder == "" {
			return numbers, nil
		}
		after = folder + "/\U0010FFFF"
		n, err := strconv.Atoi(folder)
		if err != nil || n < 0 || strconv.Itoa(n) != folder {
			continue
		}
		_, err = store.Stat(ctx, generationPath(n))
		if errors.Is(err, storage.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, unavailable(err)
		}
		numbers = append(numbers, n)
	}
}

// seen gives the number of the table's last reset for a new generation, nil for none.
func (f *Flow) seen(target *delta.Snapshot) *int64 {
	if n := resetOf(target, f.Pipeline, f.Dataset); n > 0 {
		return &n
	}
	return nil
}

// createGeneration records a generation. Another run that made it first wins,
// and this one stops: two updates of one flow must not run at once.
func createGeneration(ctx context.Context, store storage.Store, g generation) error {
	err := putRecord(ctx, store, generationPath(g.Generation), g)
	fpGenerationCreated.Hit()
	return err
}
