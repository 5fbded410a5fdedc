package guestaccess

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// kubeconfig is what is needed of an administrator's kubeconfig: the API server of its current context, and how to log in there.
type kubeconfig struct {
	server, serverName string
	ca                 []byte // PEM
	certificate        *tls.Certificate
	token              string
}

// kubeconfigFile is a kubeconfig (client-go, api/v1) as far as HyperShift writes one. What else a cluster or user has is refused, because to
// leave it out would change where the administrator's credentials go.
type kubeconfigFile struct {
	Current  string `yaml:"current-context"`
	Contexts []struct {
		Name    string
		Context struct{ Cluster, User string }
	}
	Clusters []struct {
		Name    string
		Cluster map[string]string
	}
	Users []struct {
		Name string
		User map[string]string
	}
}

// Keys of a cluster and of a user.
const (
	keyServer     = "server"
	keyServerName = "tls-server-name"
	keyCA         = "certificate-authority-data"
	keyClient     = "client-certificate-data"
	keyKey        = "client-key-data"
	keyToken      = "token"
)

// parseKubeconfig reads a kubeconfig. Its errors repeat no value, since most of them are secrets.
func parseKubeconfig(text []byte) (kubeconfig, error) {
	var f kubeconfigFile
	if yaml.Unmarshal(text, &f) != nil {
		return kubeconfig{}, errors.New("not a kubeconfig with data in the file itself, as HyperShift makes one")
	}
	cluster, user, err := f.current()
	if err != nil {
		return kubeconfig{}, err
	}
	if err := onlyKeys("cluster", cluster, keyServer, keyServerName, keyCA); err != nil {
		return kubeconfig{}, err
	}
	if err := onlyKeys("user", user, keyClient, keyKey, keyToken); err != nil {
		return kubeconfig{}, err
	}
	k := kubeconfig{server: strings.TrimSuffix(cluster[keyServer], "/"), serverName: cluster[keyServerName], token: user[keyToken]}
	if u, err := url.Parse(k.server); err != nil || u.Scheme != "https" || u.Host == "" {
		return kubeconfig{}, errors.New("the server is not an https URL")
	}
	if k.ca, err = base64.StdEncoding.DecodeString(cluster[keyCA]); err != nil || !x509.NewCertPool().AppendCertsFromPEM(k.ca) {
		return kubeconfig{}, errors.New("certificate-authority-data holds no certificate")
	}
	return k, k.logIn(user)
}

// logIn reads the client certificate; without one there must be a token.
func (k *kubeconfig) logIn(user map[string]string) error {
	if user[keyClient] == "" {
		if k.token == "" {
			return errors.New("the user has neither client-certificate-data nor a token")
		}
		return nil
	}
	certificate, err := base64.StdEncoding.DecodeString(user[keyClient])
	key, keyErr := base64.StdEncoding.DecodeString(user[keyKey])
	if err != nil || keyErr != nil {
		return errors.New("the client certificate or its key is not base64")
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return errors.New("the client certificate and its key do not belong together, or one of them is not PEM")
	}
	k.certificate = &pair
	return nil
}

// current are the cluster and the user of the current context.
func (f kubeconfigFile) current() (cluster, user map[string]string, err error) {
	for _, c := range f.Contexts {
		if c.Name != f.Current {
			continue
		}
		for _, named := range f.Clusters {
			if named.Name == c.Context.Cluster {
				cluster = named.Cluster
			}
		}
		for _, named := range f.Users {
			if named.Name == c.Context.User {
				user = named.User
			}
		}
	}
	if cluster == nil || user == nil {
		return nil, nil, errors.New("it has no current context with a cluster and a user")
	}
	return cluster, user, nil
}

func onlyKeys(what string, entry map[string]string, known ...string) error {
	for key := range entry {
		found := false
		for _, k := range known {
			found = found || k == key
		}
		if !found {
			return fmt.Errorf("the %s has the key %s, which this program does not know; want only %s", what, key, strings.Join(known, ", "))
		}
	}
	return nil
}

// forToken is the kubeconfig of the sidecars. It names files, so that a renewal need not change it.
func (k kubeconfig) forToken(dir string) []byte {
	cluster := map[string]string{keyServer: k.server, "certificate-authority": filepath.Join(dir, "ca.crt")}
	if k.serverName != "" {
		cluster[keyServerName] = k.serverName
	}
	const name = "guest"
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"contexts": []any{map[string]any{"name": name, "context": map[string]string{"cluster": name, "user": name}}},
		"clusters": []any{map[string]any{"name": name, "cluster": cluster}},
		"users":    []any{map[string]any{"name": name, "user": map[string]string{"tokenFile": filepath.Join(dir, "token")}}},
	})
	if err != nil {
		panic(err) // maps of strings always marshal
	}
	return text
}
