package cloud_test

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/cloud"
	"github.com/weir-data/weir/host/storage/cloud/cloudtest"
	"github.com/weir-data/weir/host/storage/storagetest"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(lockChild); url != "" {
		holdLock(url)
	}
	goleak.VerifyTestMain(m)
}

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

// services are the stores that tests run on.
var services = []struct {
	name, url string
	start     func(testing.TB) *cloudtest.Server
}{
	{"s3", "s3://lake/", cloudtest.S3},
	{"azure", "azblob://lake/", cloudtest.Azure},
	{"gcs", "gs://lake/", cloudtest.GCS},
}

func TestEveryStoreKeepsTheRules(t *testing.T) {
	for _, v := range services {
		t.Run(v.name, func(t *testing.T) {
			storagetest.Run(t, func(t *testing.T) storage.Store {
				v.start(t)
				return open(t, v.url+"some/folder")
			})
		})
	}
}
