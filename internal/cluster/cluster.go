// Package cluster reads the objects of a Kubernetes cluster through its API. It sends GET requests, and in write.go the one PATCH of the drift
// check. A page of a pod is also read through the API server, by port-forward.
//
// It decodes the few fields that its callers name, and no typed client is linked for that. An error names the object, the cluster
// and the reason. A Secret's values never leave this package.
package cluster

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// Kinds of failure, for errors.Is.
var (
	ErrNotFound     = errors.New("not found")             // the cluster has no such object, or does not serve the API
	ErrDenied       = errors.New("denied")                // the user may not read the object
	ErrUnreachable  = errors.New("cluster unreachable")   // the API server does not answer, or not as one does
	ErrNoKubeconfig = errors.New("no kubeconfig")         // no file names a cluster
	ErrKubeconfig   = errors.New("unusable kubeconfig")   // the file cannot be read, or has no such context
	errTooLarge     = errors.New("the answer is too big") // more than maxAnswer bytes
)

// maxAnswer is the most that is read of one answer, in bytes: 500 pods or workloads have less.
const maxAnswer = 64 << 20

// One request lists pageSize objects, and fewer if their answer is too big. As JSON an object has at most some 9 MiB: etcd stores 1.5 MiB, and
// a character may need six. So smallestPage objects are never too many.
const (
	pageSize     = 500
	smallestPage = 7
)

// Source says where the kubeconfig is, and what of it counts. Empty fields mean kubectl's rules: KUBECONFIG, then ~/.kube/config, and the
// context that the file chooses.
type Source struct {
	Kubeconfig, Context string
	User                string // an entry of the kubeconfig, in place of that of the context
	As                  string // the user to act as
	// Pod is whether the cluster of the pod counts where no kubeconfig names one, as with kubectl. It is off by default, because a pipeline may
	// run in a pod of another cluster.
	Pod bool
}

func (s Source) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.Kubeconfig
	rules.WarnIfAllMissing = false
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{
		CurrentContext: s.Context, Context: api.Context{AuthInfo: s.User}, AuthInfo: api.AuthInfo{Impersonate: s.As},
	})
}

// Contexts lists the contexts of the kubeconfig, sorted.
func Contexts(s Source) ([]string, error) {
	raw, err := s.loader().RawConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKubeconfig, err)
	}
	return slices.Sorted(maps.Keys(raw.Contexts)), nil
}

// Cluster is one cluster's API server.
type Cluster struct {
	name      string
	namespace string
	base      *url.URL
	http      *http.Client
	config    *rest.Config // nil if the cluster is only a URL and a client; then no port can be forwarded
}

// Connect reads the kubeconfig; it sends no request. Errors: ErrNoKubeconfig, ErrKubeconfig.
func Connect(s Source) (*Cluster, error) {
	loader := s.loader()
	raw, err := loader.RawConfig()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s does not exist", ErrKubeconfig, s.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKubeconfig, err)
	}
	if _, found := raw.Contexts[s.Context]; s.Context != "" && !found {
		return nil, fmt.Errorf("%w: there is no context %q; there are %s", ErrKubeconfig, s.Context, strings.Join(slices.Sorted(maps.Keys(raw.Contexts)), ", "))
	}
	if len(raw.Clusters) == 0 && s.Kubeconfig == "" && s.Context == "" {
		if s.Pod {
			return ofPod()
		}
		return nil, ErrNoKubeconfig
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKubeconfig, err)
	}
	c, err := of(cmp.Or(s.Context, raw.CurrentContext), config)
	if err != nil {
		return nil, err
	}
	if c.namespace, _, err = loader.Namespace(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKubeconfig, err)
	}
	return c, nil
}

func of(name string, config *rest.Config) (*Cluster, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKubeconfig, err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKubeconfig, err)
	}
	c := New(name, base, client)
	c.config = config
	return c, nil
}

// podFiles is where Kubernetes mounts the token of a pod, its namespace and the CA of the cluster.
const podFiles = "/var/run/secrets/kubernetes.io/serviceaccount"

func ofPod() (*Cluster, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("%w, and this is no pod with a token: %w", ErrNoKubeconfig, err)
	}
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // the environment's proxy is for OpenStack
	c, err := of("of this pod", config)
	if err != nil {
		return nil, err
	}
	namespace, err := os.ReadFile(podFiles + "/namespace")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKubeconfig, err)
	}
	c.namespace = strings.TrimSpace(string(namespace))
	return c, nil
}

// New is a cluster at a URL. The client brings the credentials, to every request: it follows no redirect, which could lead anywhere.
func New(name string, base *url.URL, client *http.Client) *Cluster {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Cluster{name: name, namespace: "default", base: base, http: &own}
}

// Namespace is that of the context.
func (c *Cluster) Namespace() string { return c.namespace }

// Credentials are the token, the password and the private key with which the kubeconfig logs in. A caller keeps them out of what it writes. The
// key is there in each form that a file may have: its text, its lines, and base64 as in a kubeconfig. What a login program gives is not among them.
func (c *Cluster) Credentials() []string {
	if c.config == nil {
		return nil
	}
	all := []string{c.config.BearerToken, c.config.Password}
	if file := c.config.BearerTokenFile; file != "" {
		if token, err := os.ReadFile(file); err == nil {
			all = append(all, string(token))
		}
	}
	key := c.config.KeyData
	if file := c.config.KeyFile; len(key) == 0 && file != "" {
		key, _ = os.ReadFile(file)
	}
	all = append(all, string(key), base64.StdEncoding.EncodeToString(key))
	for line := range strings.Lines(string(key)) {
		if !strings.HasPrefix(line, "-----") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// Name is the context and the address of the cluster, for messages.
func (c *Cluster) Name() string { return fmt.Sprintf("context %s at %s", c.name, c.base.Redacted()) }

// Get reads the object or the list at an absolute path of the API into a value. Errors: ErrNotFound, ErrDenied, ErrUnreachable.
func (c *Cluster) Get(ctx context.Context, path string, into any) error {
	body, err := c.read(ctx, path, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return c.failed(path, fmt.Errorf("%w: the answer is not what Kubernetes sends: %w", ErrUnreachable, err))
	}
	cloud.CleanStrings(into)
	return nil
}

// List reads every object of a list, page by page.
func List[T any](ctx context.Context, c *Cluster, path string) ([]T, error) {
	return Select[T](ctx, c, path, Selector{})
}

// Selector limits a list to some objects. The empty Selector selects all. Both fields have the form of kubectl: "name=value,name=value".
type Selector struct{ Labels, Fields string }

// Select reads every selected object of a list, page by page.
func Select[T any](ctx context.Context, c *Cluster, path string, s Selector) ([]T, error) {
	all := []T{}
	query := url.Values{}
	if s.Labels != "" {
		query.Set("labelSelector", s.Labels)
	}
	if s.Fields != "" {
		query.Set("fieldSelector", s.Fields)
	}
	for limit := pageSize; ; {
		query.Set("limit", strconv.Itoa(limit))
		body, err := c.read(ctx, path, query)
		if errors.Is(err, errTooLarge) && limit > smallestPage { // one who may create large objects does not hide those of others
			limit /= 4
			continue
		}
		if err != nil {
			return nil, err
		}
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []T `json:"items"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, c.failed(path, fmt.Errorf("%w: the answer is not what Kubernetes sends: %w", ErrUnreachable, err))
		}
		cloud.CleanStrings(&page.Items)
		all = append(all, page.Items...)
		next := page.Metadata.Continue
		switch next {
		case "":
			return all, nil
		case query.Get("continue"): // more requests would give the same page for ever
			return nil, c.failed(path, fmt.Errorf("%w: the answer is not what Kubernetes sends: the list does not end, its continue token repeats", ErrUnreachable))
		}
		query.Set("continue", next)
	}
}

// Log reads the end of the log of a container: so many lines, and at most so many bytes, whatever its kubelet sends. Previous is the log of its
// run before the last restart.
// Errors: ErrNotFound, ErrDenied, ErrUnreachable.
func (c *Cluster) Log(ctx context.Context, namespace, pod, container string, lines, limit int, previous bool) ([]byte, error) {
	query := url.Values{"container": {container}, "tailLines": {strconv.Itoa(lines)}, "limitBytes": {strconv.Itoa(limit)}, "timestamps": {"true"}}
	if previous {
		query.Set("previous", "true")
	}
	text, err := c.readUpTo(ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/pods/"+url.PathEscape(pod)+"/log", query, limit)
	if errors.Is(err, errTooLarge) {
		return text, nil
	}
	return text, err
}

// SecretKeys lists the keys of a Secret, sorted. The values are dropped where they are read.
func (c *Cluster) SecretKeys(ctx context.Context, namespace, name string) ([]string, error) {
	var secret struct {
		Data map[string]dropped `json:"data"`
	}
	if err := c.Get(ctx, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/secrets/"+url.PathEscape(name), &secret); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(secret.Data)), nil
}

// dropped decodes anything to nothing.
type dropped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*dropped) UnmarshalJSON([]byte) error { return nil }

func (c *Cluster) read(ctx context.Context, path string, query url.Values) ([]byte, error) {
	return c.readUpTo(ctx, path, query, maxAnswer)
}

func (c *Cluster) readUpTo(ctx context.Context, path string, query url.Values, most int) ([]byte, error) {
	u := c.base.JoinPath(path)
	u.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, c.failed(path, err)
	}
	request.Header.Set("Accept", "application/json, */*") // a log is text
	return c.do(request, path, most)
}

// do sends a request for a path of the API and reads the answer. With errTooLarge it returns the first bytes, as many as were asked for.
func (c *Cluster) do(request *http.Request, path string, most int) ([]byte, error) {
	failed := func(err error) error { return c.failedTo(request.Method, path, err) }
	resp, err := c.http.Do(request)
	if sent := (*url.Error)(nil); errors.As(err, &sent) {
		err = sent.Err // the rest repeats the request
	}
	if err != nil {
		return nil, failed(fmt.Errorf("%w: %w; see that kubectl reaches it", ErrUnreachable, err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	if err == nil && len(body) > most && resp.StatusCode < http.StatusMultipleChoices {
		body, err = body[:most], errTooLarge
	}
	if err != nil {
		return body, failed(fmt.Errorf("%w: %w", ErrUnreachable, err))
	}
	return body, statusError(resp.StatusCode, body, failed)
}

// statusError is what a status means.
func statusError(status int, body []byte, failed func(error) error) error {
	var answer struct {
		Message string `json:"message"`
	}
	_ = json.Unmarshal(body, &answer) // a proxy's answer has no message
	reason := fmt.Sprintf("HTTP %d %s", status, cloud.Public(answer.Message))
	switch {
	case status == http.StatusOK, status == http.StatusCreated:
		return nil
	case status == http.StatusNotFound:
		return failed(fmt.Errorf("%w: %s", ErrNotFound, reason))
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return failed(fmt.Errorf("%w: %s", ErrDenied, reason))
	}
	return failed(fmt.Errorf("%w: %s", ErrUnreachable, reason))
}

func (c *Cluster) failed(path string, err error) error { return c.failedTo(http.MethodGet, path, err) }

func (c *Cluster) failedTo(method, path string, err error) error {
	return fmt.Errorf("%s %s of the cluster (%s): %w", method, path, c.Name(), err)
}

// WorkloadKinds are the kinds of objects whose pods may run a driver, with the paths of their lists.
var WorkloadKinds = map[string]string{
	"Deployment": "/apis/apps/v1/deployments", "StatefulSet": "/apis/apps/v1/statefulsets", "DaemonSet": "/apis/apps/v1/daemonsets",
	"ReplicaSet": "/apis/apps/v1/replicasets", "Pod": "/api/v1/pods",
}

// Workloads lists what may run a driver: every Deployment, StatefulSet and DaemonSet, and the ReplicaSets and Pods that none of them owns.
func (c *Cluster) Workloads(ctx context.Context) ([]Workload, error) {
	var all []Workload
	for kind, path := range WorkloadKinds {
		found, err := List[workload](ctx, c, path)
		if err != nil {
			return nil, err
		}
		for _, w := range found {
			if !Owned(w.Metadata.OwnerReferences) {
				all = append(all, w.of(kind))
			}
		}
	}
	slices.SortFunc(all, func(a, b Workload) int { return strings.Compare(a.String(), b.String()) })
	return all, nil
}
