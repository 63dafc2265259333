package cloud_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/cloud"
	"github.com/weir-data/weir/host/storage/cloud/cloudtest"
	"github.com/weir-data/weir/host/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// open opens a folder of a store and closes it with the test.
func open(t testing.TB, url string) *cloud.Store {
	t.Helper()
	s, err := cloud.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestEveryStoreKeepsTheRules(t *testing.T) {
	t.Run("s3", func(t *testing.T) {
		storagetest.Run(t, func(t *testing.T) storage.Store {
			cloudtest.S3(t)
			return open(t, "s3://lake/some/folder")
		})
	})
}
