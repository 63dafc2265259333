package cloudtest

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// S3 starts an S3 for a test and sets the environment so that clients find it.
// Its folders are s3://lake/….
func S3(t testing.TB) *Server {
	t.Helper()
	s := StartS3()
	return s.forTest(t, S3Env(s.URL))
}

// StartS3 starts an S3, which the caller closes.
func StartS3() *Server {
	return newServer(func(s *Server) http.HandlerFunc { return s.s3 })
}

// S3Env is the environment in which clients find an S3 at an endpoint.
func S3Env(endpoint string) map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	}
}

func (s *Server) s3(w http.ResponseWriter, r *http.Request) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	body, err := s3Body(r)
	switch {
	case err != nil:
		fail(w, r, http.StatusBadRequest, "IncompleteBody")
	case bucket != Bucket:
		fail(w, r, http.StatusNotFound, "NoSuchBucket")
	case key == "" && r.Method == http.MethodGet:
		s.s3List(w, q)
	case r.Method == http.MethodPost && q.Has("delete"):
		s.s3DeleteMany(w, r, body)
	case r.Method == http.MethodPost && q.Has("uploads"):
		id := s.begin(key, s3Meta(r), condition{})
		writeXML(w, struct {
			XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
			Bucket   string
			Key      string
			UploadID string `xml:"UploadId"`
		}{Bucket: bucket, Key: key, UploadID: id})
	case r.Method == http.MethodPost && q.Has("uploadId"):
		s.s3Complete(w, r, key, q.Get("uploadId"), body)
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		s.end(q.Get("uploadId"))
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPut && q.Has("uploadId"):
		if !s.addPart(q.Get("uploadId"), q.Get("partNumber"), body) {
			fail(w, r, http.StatusNotFound, "NoSuchUpload")
			return
		}
		w.Header().Set("ETag", fmt.Sprintf(`"part-%s"`, q.Get("partNumber")))
	case r.Method == http.MethodPut:
		o, ok := s.put(key, body, s3Meta(r), s3Condition(r))
		if !ok {
			fail(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
			return
		}
		w.Header().Set("ETag", o.etag)
	case r.Method == http.MethodDelete:
		s.remove(key)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		o := s.get(key)
		switch etag := r.Header.Get("If-Match"); {
		case o == nil:
			fail(w, r, http.StatusNotFound, "NoSuchKey")
		case etag != "" && etag != o.etag:
			fail(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
		default:
			for k, v := range o.meta {
				w.Header().Set("x-amz-meta-"+k, v)
			}
			serve(w, r, o, r.Header.Get("Range"))
		}
	default:
		fail(w, r, http.StatusNotImplemented, "NotImplemented")
	}
}

func s3Condition(r *http.Request) condition {
	return condition{absent: r.Header.Get("If-None-Match") == "*", etag: r.Header.Get("If-Match")}
}

func s3Meta(r *http.Request) map[string]string {
	meta := map[string]string{}
	for k := range r.Header {
		if name, ok := strings.CutPrefix(strings.ToLower(k), "x-amz-meta-"); ok {
			meta[name] = r.Header.Get(k)
		}
	}
	return meta
}

// s3Body reads the body, without the frames of a streamed one.
func s3Body(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("x-amz-content-sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	in := bufio.NewReader(r.Body)
	var out bytes.Buffer
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			_, err = io.Copy(io.Discard, in) // trailers
			return out.Bytes(), err
		}
		if _, err := io.CopyN(&out, in, n); err != nil {
			return nil, err
		}
		if _, err := in.Discard(2); err != nil {
			return nil, err
		}
	}
}

func writeXML(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, xml.Header)
	_ = xml.NewEncoder(w).Encode(v)
}

func (s *Server) s3List(w http.ResponseWriter, q url.Values) {
	limit := 1000
	if n, err := strconv.Atoi(q.Get("max-keys")); err == nil {
		limit = min(n, limit)
	}
	after := q.Get("start-after")
	if token := q.Get("continuation-token"); token != "" {
		after = token
	}
	type content struct {
		Key          string
		LastModified string
		ETag         string
		Size         int
	}
	type common struct{ Prefix string }
	var page struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Name                  string
		Prefix                string
		KeyCount              int
		MaxKeys               int
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		EncodingType          string `xml:",omitempty"`
		Contents              []content
		CommonPrefixes        []common
	}
	encode := func(key string) string { return key }
	if q.Get("encoding-type") == "url" {
		page.EncodingType = "url"
		encode = url.QueryEscape
	}
	prefix, delimiter := q.Get("prefix"), q.Get("delimiter")
	page.Name, page.Prefix, page.MaxKeys = Bucket, encode(prefix), limit
	keys, objects, more := s.page(prefix, after, "", 1<<30)
	last := ""
	for i, key := range keys {
		if len(page.Contents)+len(page.CommonPrefixes) == limit {
			more = true
			break
		}
		last = key
		if delimiter != "" {
			if folder, _, ok := strings.Cut(key[len(prefix):], delimiter); ok {
				folder = encode(prefix + folder + delimiter)
				if n := len(page.CommonPrefixes); n == 0 || page.CommonPrefixes[n-1].Prefix != folder {
					page.CommonPrefixes = append(page.CommonPrefixes, common{folder})
				}
				continue
			}
		}
		o := objects[i]
		page.Contents = append(page.Contents, content{encode(key), o.mod.UTC().Format(time.RFC3339), o.etag, len(o.data)})
	}
	page.KeyCount = len(page.Contents) + len(page.CommonPrefixes)
	if page.IsTruncated = more; more {
		page.NextContinuationToken = last
	}
	writeXML(w, page)
}

func (s *Server) s3Complete(w http.ResponseWriter, r *http.Request, key, id string, body []byte) {
	var list struct {
		Part []struct{ PartNumber string }
	}
	if err := xml.Unmarshal(body, &list); err != nil {
		fail(w, r, http.StatusBadRequest, "MalformedXML")
		return
	}
	s.mu.Lock()
	u := s.uploads[id]
	s.mu.Unlock()
	if u == nil {
		fail(w, r, http.StatusNotFound, "NoSuchUpload")
		return
	}
	var data []byte
	for _, p := range list.Part {
		data = append(data, u.parts[p.PartNumber]...)
	}
	o, ok := s.put(key, data, u.meta, s3Condition(r))
	if !ok {
		fail(w, r, http.StatusPreconditionFailed, "PreconditionFailed")
		return
	}
	s.end(id)
	writeXML(w, struct {
		XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
		Bucket  string
		Key     string
		ETag    string
	}{Bucket: Bucket, Key: key, ETag: o.etag})
}

func (s *Server) s3DeleteMany(w http.ResponseWriter, r *http.Request, body []byte) {
	type key struct{ Key string }
	var in struct{ Object []key }
	if err := xml.Unmarshal(body, &in); err != nil {
		fail(w, r, http.StatusBadRequest, "MalformedXML")
		return
	}
	for _, k := range in.Object {
		s.remove(k.Key)
	}
	writeXML(w, struct {
		XMLName xml.Name `xml:"DeleteResult"`
		Deleted []key
	}{Deleted: in.Object})
}
