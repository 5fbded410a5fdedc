package guestaccess

import (
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/internal/kubeconfig"
)

// forToken is the kubeconfig of the sidecars. It names files, so that a renewal need not change it.
func forToken(k kubeconfig.Config, dir string) []byte {
	cluster := map[string]string{"server": k.Server, "certificate-authority": filepath.Join(dir, "ca.crt")}
	if k.ServerName != "" {
		cluster["tls-server-name"] = k.ServerName
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
