package rights

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Call is what is read of an audit event (audit.k8s.io/v1, Event).
type Call struct {
	Verb, UserAgent, RequestURI string
	RequestReceivedTimestamp    time.Time
	User                        struct{ Username string }
	ObjectRef                   struct{ Resource, Namespace, Name, APIGroup, Subresource string }
	ResponseStatus              struct{ Code int }
	Annotations                 map[string]string
}

// Right is the right that the call needs. It has no resource where the call is for discovery or health.
func (c Call) Right() Right {
	resource := c.ObjectRef.Resource
	if c.ObjectRef.Subresource != "" {
		resource += "/" + c.ObjectRef.Subresource
	}
	return Right{c.Verb, c.ObjectRef.APIGroup, resource}
}

// Account is "NAMESPACE/NAME" of the service account that sent the call, or empty.
func (c Call) Account() string {
	account, is := strings.CutPrefix(c.User.Username, accountPrefix)
	if !is {
		return ""
	}
	return strings.Replace(account, ":", "/", 1)
}

const accountPrefix = "system:serviceaccount:"

// Program is the name of the program that sent the call: the user agent of client-go begins with it.
func (c Call) Program() string {
	program, _, _ := strings.Cut(c.UserAgent, "/")
	return program
}

// Denied reports whether the API server refused the call for want of a right. HTTP 403 alone does not say so: admission also answers with it, for
// instance to an event for a namespace that is being deleted.
func (c Call) Denied() bool {
	if decision := c.Annotations["authorization.k8s.io/decision"]; decision != "" {
		return decision == "forbid"
	}
	return c.ResponseStatus.Code == http.StatusForbidden
}

// Read gives the calls of an audit log since a time, in the order of the log. The API server may have rotated it: every file beside it with its
// name and a time is read too. Only lines with the mark are decoded; a log has many more. The last line may be half written.
func Read(path string, since time.Time, mark string) ([]Call, error) {
	extension := filepath.Ext(path)
	rotated, err := filepath.Glob(strings.TrimSuffix(path, extension) + "-*" + extension)
	if err != nil {
		return nil, err
	}
	var all []Call
	for _, file := range append(rotated, path) { // the times in the names are in order
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		if info.ModTime().Before(since) {
			continue
		}
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		calls, err := decode(f, []byte(mark))
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, c := range calls {
			if !c.RequestReceivedTimestamp.Before(since) {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

func decode(log io.Reader, mark []byte) ([]Call, error) {
	var all []Call
	lines := bufio.NewReaderSize(log, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(line, mark) {
			continue
		}
		var c Call
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
}
