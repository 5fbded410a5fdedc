//go:build openshift

package openshift

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cinder-csi/cinder-csi/test/kit/controlplane"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var (
	kubeconfig = flag.String("kubeconfig", "", "the cluster of somebody; without it, an API server with the stand-in")
	write      = flag.Bool("write", false, "in the cluster of somebody, create namespaces, accounts, roles and bindings, and remove them again")
	every      = flag.Bool("every", false, "in the cluster of somebody, ask for the pods of every switch, not only of the four whole rows")
	recordFile = flag.String("record", "", "write the record to this file")
)

// object is one object as JSON has it.
type object = map[string]any

// client sends requests to an API server.
type client struct {
	base string
	http *http.Client
}

func newClient(t *testing.T, path string) *client {
	t.Helper()
	config := testenv.Value(clientcmd.BuildConfigFromFlags("", path))(t)
	web := testenv.Value(rest.HTTPClientFor(config))(t)
	return &client{base: strings.TrimSuffix(config.Host, "/"), http: web}
}

// errStatus is an answer of the API server that is no success.
type errStatus struct {
	code    int
	message string
}

func (e *errStatus) Error() string { return fmt.Sprintf("HTTP %d: %s", e.code, e.message) }

func is(err error, code int) bool {
	var status *errStatus
	return errors.As(err, &status) && status.code == code
}

// send sends a request, as another account of namespace kube-system if account is not empty.
func (c *client) send(method, path string, body any, account string) (object, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if account != "" {
		request.Header.Set("Impersonate-User", "system:serviceaccount:"+account)
		namespace, _, _ := strings.Cut(account, ":")
		for _, group := range []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"} {
			request.Header.Add("Impersonate-Group", group)
		}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	read := object{}
	if err := json.Unmarshal(answer, &read); err != nil && response.StatusCode < 300 {
		return nil, err
	}
	if response.StatusCode >= 300 {
		message, _ := read["message"].(string)
		return nil, &errStatus{response.StatusCode, message}
	}
	return read, nil
}

func (c *client) get(path string) (object, error) { return c.send(http.MethodGet, path, nil, "") }

// items are the objects of a list.
func (c *client) items(path string) ([]object, error) {
	list, err := c.get(path)
	if err != nil {
		return nil, err
	}
	var all []object
	values, _ := list["items"].([]any)
	for _, v := range values {
		all = append(all, v.(object))
	}
	return all, nil
}

// at is a value inside of an object; nil if it is not there.
func at(o any, path ...string) any {
	for _, key := range path {
		fields, ok := o.(object)
		if !ok {
			return nil
		}
		o = fields[key]
	}
	return o
}

func text(o any, path ...string) string {
	s, _ := at(o, path...).(string)
	return s
}

// inside is a map inside of an object, which is made if it is missing.
func inside(o object, path ...string) object {
	for _, key := range path {
		next, ok := o[key].(object)
		if !ok {
			next = object{}
			o[key] = next
		}
		o = next
	}
	return o
}

// controllers of Kubernetes that make pods, by the kind of what they make them for. The stand-in runs them, and a node for their DaemonSets.
const controllers = "namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,deployment-controller,replicaset-controller,daemonset-controller,job-controller"

// startStandIn starts an API server with the stand-in of OpenShift's admission, and gives the kubeconfigs of an administrator and of a reader.
func startStandIn(t *testing.T) (admin, reader string) {
	t.Helper()
	w := controlplane.NewWorkdir(t)
	w.ServerArgs = []string{"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"} // OpenShift has it on
	w.ControllerArgs = []string{"--use-service-account-credentials"}                           // admission asks what each of them may use
	w.Start(t, controllers)
	run := func(command ...string) {
		t.Helper()
		if out, messages, err := w.Try(command...); err != nil {
			t.Fatalf("%s: %v\n%s%s", strings.Join(command, " "), err, out, messages)
		}
	}
	run("kubectl", "create", "-f", filepath.Join(w.Repo, "bin/crds"))
	run("kubectl", "wait", "--for=condition=Established", "customresourcedefinitions", "--all")
	run("kubectl", "create", "-f", filepath.Join(w.Repo, "test/suite/openshift/standin.yaml"))
	w.Write(t, "node.yaml", `{apiVersion: v1, kind: Node, metadata: {name: node-0, labels: {kubernetes.io/os: linux}}}`)
	run("kubectl", "create", "-f", w.Path("node.yaml"))
	run("kubectl", "taint", "node", "node-0", "node.kubernetes.io/not-ready:NoSchedule-")
	run("kubectl", "create", "clusterrolebinding", "reader", "--clusterrole=view", "--user=reader")
	config := testfile.Text(t, w.Path("kubeconfig"))
	w.Write(t, "reader", strings.Replace(config, `{"token": "admin"}`, `{"token": "admin", "as": "reader", "as-groups": ["system:authenticated"]}`, 1))
	c := newClient(t, w.Path("kubeconfig"))
	for _, name := range []string{"privileged", "restricted", "restricted-v2"} {
		constraint := object{
			"apiVersion": "security.openshift.io/v1", "kind": "SecurityContextConstraints", "metadata": object{"name": name},
			"allowHostDirVolumePlugin": false, "allowHostIPC": false, "allowHostNetwork": false, "allowHostPID": false, "allowHostPorts": false,
			"allowPrivilegedContainer": false, "readOnlyRootFilesystem": false,
			"allowedCapabilities": nil, "defaultAddCapabilities": nil, "priority": nil, "requiredDropCapabilities": nil, "volumes": []any{"*"},
		}
		testenv.Value(c.send(http.MethodPost, "/apis/security.openshift.io/v1/securitycontextconstraints", constraint, ""))(t)
	}
	awaitPolicies(t, c)
	return w.Path("kubeconfig"), w.Path("reader")
}

// awaitPolicies waits until the API server obeys the policies, which it reads some time after they were written.
func awaitPolicies(t *testing.T, c *client) {
	t.Helper()
	for range 200 {
		namespace, err := c.send(http.MethodPost, "/api/v1/namespaces?dryRun=All", object{"metadata": object{"name": "policies"}}, "")
		if err == nil && text(namespace, "metadata", "annotations", "openshift.io/sa.scc.uid-range") != "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the API server does not obey the policies of the stand-in")
}
