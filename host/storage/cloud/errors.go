package cloud

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/weir-data/weir/host/fault"
	"github.com/weir-data/weir/host/storage"
)

// errChanged: the object was replaced while it was being read.
var errChanged = errors.New("the object was replaced while it was read")

// escaped is how gocloud.dev writes characters into names, and reads them out of any.
var escaped = regexp.MustCompile(`__0x[0-9a-fA-F]+__`)

// checkKey refuses names that a service or gocloud.dev would store under another.
func checkKey(name string) error {
	control := strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7F })
	if control || !utf8.ValidString(name) || escaped.MatchString(name) {
		return fmt.Errorf("%w: %q cannot be stored in an object store", storage.ErrInvalidName, name)
	}
	return nil
}

// credentials tells that there is nothing to sign a request with: waiting does not help.
func credentials(err error) bool {
	text := err.Error()
	for _, part := range []string{"failed to refresh cached credentials", "get credentials", "DefaultAzureCredential", "could not find default credentials", "missing region", "Invalid region"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// taken tells that a conditional write found the name in use. Azure says so
// with 409, on which S3 means "another write is under way".
func taken(status int, code string) bool {
	return status == http.StatusPreconditionFailed || status == http.StatusConflict && code == "BlobAlreadyExists"
}

// fail gives err its kind and its code.
func (s *Store) fail(err error, op, name string) error {
	if err == nil {
		return nil
	}
	var coded *fault.Error
	if errors.As(err, &coded) {
		return err
	}
	switch status, code := s.service.status(err); {
	case status == http.StatusNotFound && (code == "NoSuchBucket" || code == "ContainerNotFound"):
		return fault.Wrap(err, "STORE_NOT_FOUND", "there is no %s", s.where.bucketURL()).
			WithHint("Create the bucket, or correct the URL")
	case status == http.StatusNotFound:
		err = fmt.Errorf("%w: %w", storage.ErrNotExist, err)
	case taken(status, code):
		err = fmt.Errorf("%w: %w", storage.ErrExist, err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		err = fmt.Errorf("%w: %w", storage.ErrPermission, err)
	case status == http.StatusInsufficientStorage:
		err = fmt.Errorf("%w: %w", storage.ErrFull, err)
	case status == 0 && credentials(err):
		return fault.Wrap(err, "STORE_CREDENTIALS", "%s %s: no usable credentials for %s", op, name, s.where).
			WithHint("%s", s.service.credentialsHint())
	}
	return storage.Coded(err, op, s.where.String()+"/"+name)
}

func (l location) bucketURL() string { return l.scheme + "://" + l.bucket }
