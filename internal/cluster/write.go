package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// ApplyData makes the data of a ConfigMap be what is given, by a server-side apply under the name of a field manager. Keys that the manager
// set before and that are not given any more are removed, those of others stay. Labels and annotations stay too.
//
// The right to patch the ConfigMap is enough while it exists. Where it does not exist, the right to create it is needed too: without it the
// error is ErrDenied. Errors: ErrDenied, ErrUnreachable.
func (c *Cluster) ApplyData(ctx context.Context, namespace, name, manager string, data map[string]string) error {
	path := "/api/v1/namespaces/" + url.PathEscape(namespace) + "/configmaps/" + url.PathEscape(name)
	failed := func(err error) error { return c.failedTo(http.MethodPatch, path, err) }
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"namespace": namespace, "name": name}, "data": data,
	})
	if err != nil {
		return failed(err)
	}
	u := c.base.JoinPath(path)
	// A key that somebody else wrote would be a conflict. The result of the last run is what counts.
	u.RawQuery = url.Values{"fieldManager": {manager}, "force": {"true"}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, u.String(), bytes.NewReader(body))
	if err != nil {
		return failed(err)
	}
	request.Header.Set("Content-Type", "application/apply-patch+yaml") // every document of JSON is one of YAML
	request.Header.Set("Accept", "application/json")
	_, err = c.do(request, path, maxAnswer)
	return err
}
