package histories

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// request is one request to OpenStack as an observer between driver and cloud sees it.
type request struct {
	class  string
	method string
	path   []string // after the service and its version: volumes, ID
	body   []byte
}

// classes names requests by method and path, where * stands for an ID.
var classes = map[string]string{
	"POST volumes": "create volume", "GET volumes detail": "list volumes", "GET volumes *": "get volume", "DELETE volumes *": "delete volume",
	"POST volumes * metadata": "set volume metadata", "DELETE volumes * metadata *": "remove volume metadata", "POST volumes * action": "act on volume",
	"POST snapshots": "create snapshot", "GET snapshots detail": "list snapshots", "GET snapshots *": "get snapshot",
	"DELETE snapshots *": "delete snapshot",
	"POST backups":       "create backup", "GET backups detail": "list backups", "GET backups *": "get backup",
	"DELETE backups *": "delete backup", "POST backups * restore": "restore backup",
	"GET attachments": "list attachments", "GET attachments *": "get attachment", "DELETE attachments *": "delete attachment",
	"GET servers *": "get server", "GET servers * os-volume_attachments": "list server attachments",
	"POST servers * os-volume_attachments": "attach", "DELETE servers * os-volume_attachments *": "detach",
	"POST auth tokens": "log in",
}

// read takes a request offset and leaves its body as it was.
func read(r *http.Request) request {
	q := request{method: r.Method}
	if r.Body != nil && r.Body != http.NoBody {
		q.body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(q.body))
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 3 && parts[0] == "volume": // volume/v3/PROJECT/…
		q.path = parts[3:]
	case len(parts) > 2: // compute/v2.1/…, identity/v3/…
		q.path = parts[2:]
	}
	words := []string{r.Method}
	for _, part := range q.path {
		if isID(part) {
			part = "*"
		}
		words = append(words, part)
	}
	q.class = classes[strings.Join(words, " ")]
	if q.class == "" {
		q.class = strings.Join(words, " ")
	}
	if q.class == "act on volume" {
		q.class = "volume action " + q.firstKey()
	}
	return q
}

func isID(s string) bool { return len(s) == 36 && strings.Count(s, "-") == 4 }

// changes reports whether the request is meant to change something in Cinder or Nova.
func (q request) changes() bool {
	return q.method != http.MethodGet && q.method != http.MethodHead && q.class != "log in"
}

// fits reports whether a fault's class chooses the request.
func (q request) fits(class string) bool {
	switch class {
	case "any":
		return true
	case "any read":
		return !q.changes()
	case "any write":
		return q.changes()
	}
	return q.class == class
}

// firstKey is the one key of the body's object, which names an action.
func (q request) firstKey() string {
	var body map[string]json.RawMessage
	_ = json.Unmarshal(q.body, &body)
	for key := range body {
		return key
	}
	return ""
}

// named is the name in the body of a create, or the volume of an attach.
func (q request) named() string {
	var body map[string]struct {
		Name     string
		VolumeID string `json:"volumeId"`
	}
	_ = json.Unmarshal(q.body, &body)
	for _, object := range body {
		if name := object.Name + object.VolumeID; name != "" {
			return name
		}
	}
	return ""
}

// restoredInto is the volume in the body of a restore.
func (q request) restoredInto() string {
	var body struct {
		Restore struct {
			Volume string `json:"volume_id"`
		}
	}
	_ = json.Unmarshal(q.body, &body)
	return body.Restore.Volume
}

// created is the ID in the reply to a create.
func created(reply []byte) string {
	var body map[string]struct{ ID string }
	_ = json.Unmarshal(reply, &body)
	for _, object := range body {
		return object.ID
	}
	return ""
}

// object is what a request is about, for the trace.
func (q request) object() string {
	object := q.named()
	for _, part := range q.path {
		if isID(part) {
			object += " " + part
		}
	}
	return object
}
