// Package kubeconfig reads the API server of the current context of a kubeconfig, and how to log in there (client-go, api/v1).
//
// It refuses what it does not know, such as an exec plugin: to leave it out would change where the credentials go. Its errors repeat no value,
// since most of them are secrets.
package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Config is an API server and a login. It has a client certificate, a token, or the file of a token.
type Config struct {
	Server, ServerName string
	CA                 []byte // PEM
	Certificate        *tls.Certificate
	Token              string
	TokenFile          string // the program reads it for each request, because somebody may replace the token
}

type file struct {
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

// Keys of a cluster and of a user, and those that name a file instead.
const (
	keyServer     = "server"
	keyServerName = "tls-server-name"
	keyCA         = "certificate-authority-data"
	keyClient     = "client-certificate-data"
	keyKey        = "client-key-data"
	keyToken      = "token"
	keyTokenFile  = "tokenFile"
)

// Parse reads a kubeconfig that has all data in itself, as HyperShift writes one.
func Parse(text []byte) (Config, error) { return parse(text, "") }

// Load reads a kubeconfig file. Certificates, keys and tokens may be in other files; relative names are relative to the directory of the file.
func Load(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, err
	}
	c, err := parse(text, filepath.Dir(path))
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// parse reads a kubeconfig. Dir is the directory of the files that it may name; empty means that it may name none.
func parse(text []byte, dir string) (Config, error) {
	var f file
	if yaml.Unmarshal(text, &f) != nil {
		return Config{}, errors.New("not a kubeconfig whose clusters and users have plain text values")
	}
	cluster, user, err := f.current()
	if err == nil && dir != "" {
		err = errors.Join(inline(dir, cluster, keyCA), inline(dir, user, keyClient, keyKey))
	}
	if err != nil {
		return Config{}, err
	}
	known := []string{keyClient, keyKey, keyToken}
	if dir != "" {
		known = append(known, keyTokenFile)
	}
	if err := errors.Join(onlyKeys("cluster", cluster, keyServer, keyServerName, keyCA), onlyKeys("user", user, known...)); err != nil {
		return Config{}, err
	}
	c := Config{Server: strings.TrimSuffix(cluster[keyServer], "/"), ServerName: cluster[keyServerName], Token: user[keyToken]}
	if name := user[keyTokenFile]; name != "" {
		c.TokenFile = within(dir, name)
	}
	if u, err := url.Parse(c.Server); err != nil || u.Scheme != "https" || u.Host == "" {
		return Config{}, errors.New("the server is not an https URL")
	}
	if c.CA, err = base64.StdEncoding.DecodeString(cluster[keyCA]); err != nil || !x509.NewCertPool().AppendCertsFromPEM(c.CA) {
		return Config{}, errors.New("certificate-authority-data holds no certificate")
	}
	return c, c.logIn(user)
}

// inline replaces the keys of files by the keys of their content.
func inline(dir string, entry map[string]string, keys ...string) error {
	for _, key := range keys {
		named := strings.TrimSuffix(key, "-data")
		if entry[named] == "" || entry[key] != "" {
			continue
		}
		content, err := os.ReadFile(within(dir, entry[named]))
		if err != nil {
			return fmt.Errorf("%s: %w", named, err)
		}
		entry[key] = base64.StdEncoding.EncodeToString(content)
		delete(entry, named)
	}
	return nil
}

func within(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// logIn reads the client certificate; without one there must be a token.
func (c *Config) logIn(user map[string]string) error {
	if user[keyClient] == "" {
		if c.Token == "" && c.TokenFile == "" {
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
	c.Certificate = &pair
	return nil
}

func (f file) current() (cluster, user map[string]string, err error) {
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
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("the %s has the key %s, which this program does not know; want only %s", what, key, strings.Join(known, ", "))
		}
	}
	return nil
}

// TLS is the TLS configuration of the connection.
func (c Config) TLS() *tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.CA)
	config := &tls.Config{RootCAs: roots, ServerName: c.ServerName, MinVersion: tls.VersionTLS12}
	if c.Certificate != nil {
		config.Certificates = []tls.Certificate{*c.Certificate}
	}
	return config
}
