package cloud_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/weir-data/weir/host/storage"
	"github.com/weir-data/weir/host/storage/cloud/cloudtest"
	"github.com/weir-data/weir/host/storage/storagetest"
)

// Stores that other people wrote are held to the same rules, where they are
// installed: our fakes could share a misunderstanding with the driver.

// startEmulator starts a program that listens on a free port of its own and
// waits until it answers.
func startEmulator(t *testing.T, args func(port int) *exec.Cmd) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if err := l.Close(); !ok || err != nil {
		t.Fatal(addr, err)
	}
	cmd := args(addr.Port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, as it should be
	})
	url := fmt.Sprintf("http://127.0.0.1:%d", addr.Port)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		resp, err := client.Get(url)
		if err == nil {
			_ = resp.Body.Close()
			return url
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not answer: %v", cmd.Path, err)
		}
	}
}

// emulator finds a program, by an environment variable or on the path.
func emulator(t *testing.T, variable, name string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		path, _ = exec.LookPath(name)
	}
	if path == "" {
		t.Skipf("%s is not installed (%s names it)", name, variable)
	}
	return path
}

// rulesUnder holds folders of a bucket to the rules, a new one for each.
func rulesUnder(t *testing.T, url string) {
	var n atomic.Int64
	storagetest.Run(t, func(t *testing.T) storage.Store {
		return open(t, fmt.Sprintf("%s/rules-%d", url, n.Add(1)))
	})
}

func TestAzuriteKeepsTheRules(t *testing.T) {
	path := emulator(t, "WEIR_AZURITE", "azurite-blob")
	url := startEmulator(t, func(port int) *exec.Cmd {
		return exec.Command(path, "--silent", "--skipApiVersionCheck", "--inMemoryPersistence", "--blobPort", fmt.Sprint(port))
	})
	env := cloudtest.AzureEnv(url[len("http://"):])
	for k, v := range env {
		t.Setenv(k, v)
	}
	cred, err := azblob.NewSharedKeyCredential(env["AZURE_STORAGE_ACCOUNT"], env["AZURE_STORAGE_KEY"])
	if err != nil {
		t.Fatal(err)
	}
	client, err := container.NewClientWithSharedKeyCredential(url+"/"+env["AZURE_STORAGE_ACCOUNT"]+"/"+cloudtest.Bucket, cred, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Create(ctx, nil); err != nil {
		t.Fatal(err)
	}
	rulesUnder(t, "azblob://"+cloudtest.Bucket)
}

func TestVersityKeepsTheRules(t *testing.T) {
	path := emulator(t, "WEIR_VERSITYGW", "versitygw")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	url := startEmulator(t, func(port int) *exec.Cmd {
		return exec.Command(path, "--access", "test", "--secret", "test", "--port", fmt.Sprintf("127.0.0.1:%d", port), "posix", filepath.Join(dir, "data"))
	})
	for k, v := range cloudtest.S3Env(url) {
		t.Setenv(k, v)
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		t.Fatal(err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	if _, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(cloudtest.Bucket)}); err != nil {
		t.Fatal(err)
	}
	rulesUnder(t, "s3://"+cloudtest.Bucket)
}
