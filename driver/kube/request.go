package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// get reads an object, or a page of a list, into a value that has the fields the caller needs. The errors are those of send.
func (a *API) get(ctx context.Context, object, path string, into any) error {
	resp, err := a.send(ctx, a.client, object, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return decode(object, resp, maxList, into)
}

// decode reads an answer of at most so many bytes.
func decode(object string, resp *http.Response, most int64, into any) error {
	if err := json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(into); err != nil {
		return volume.Errorf(volume.Unavailable, "%s: cannot decode the answer of the Kubernetes API: %w", object, err).Cause(cause.KubernetesUnreachable)
	}
	drain(resp)
	return nil
}

// drain reads the rest of an answer, so that the connection can be used again.
func drain(resp *http.Response) { _, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer)) }

// maxList is the longest page of a list that the driver reads, in bytes: pageSize nodes of 30 kB each, and reserve.
const maxList = 64 << 20

// patch changes an object by a JSON patch (RFC 6902). A failed test operation is a Conflict.
func (a *API) patch(ctx context.Context, object, path string, operations any) error {
	body, err := json.Marshal(operations)
	if err != nil {
		return volume.Errorf(volume.Unknown, "%s: %w", object, err)
	}
	resp, err := a.send(ctx, a.client, object, http.MethodPatch, path, body)
	if err != nil {
		return err
	}
	drain(resp)
	return resp.Body.Close()
}

// send sends a request and returns the answer if its status is 200. Errors: NotFound (404), Conflict (409, and 422 for a failed test of a JSON
// patch), PermissionDenied (401, 403), and Unavailable otherwise. See the Kubernetes API conventions, "HTTP Status codes".
func (a *API) send(ctx context.Context, client *http.Client, object, method, path string, body []byte) (*http.Response, error) {
	resp, err := a.do(ctx, client, object, method, path, "application/json", body)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	drain(resp)
	_ = resp.Body.Close()
	kind := kindOf(resp.StatusCode)
	if resp.StatusCode == http.StatusConflict || resp.StatusCode == http.StatusUnprocessableEntity {
		kind = volume.Conflict
	}
	return nil, volume.Errorf(kind, "%s: the Kubernetes API answers %s with HTTP %d", object, method, resp.StatusCode).Cause(causeOf(kind))
}

// do sends a request and returns the answer, whatever its status.
func (a *API) do(ctx context.Context, client *http.Client, object, method, path, accept string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, volume.Errorf(volume.Unknown, "%s: %w", object, err)
	}
	req.Header.Set("Accept", accept)
	if body != nil {
		req.Header.Set("Content-Type", "application/json-patch+json")
	}
	if err := a.identify(req); err != nil {
		return nil, volume.Errorf(volume.Unavailable, "%s: cannot read the token of the service account: %w", object, err).Cause(cause.KubernetesRights)
	}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, volume.Interrupted(ctx, "%s", object)
		}
		return nil, volume.Errorf(volume.Unavailable, "%s: the Kubernetes API does not answer: %w", object, err).Cause(cause.KubernetesUnreachable)
	}
	return resp, nil
}
