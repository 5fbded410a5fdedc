// Package guestaccess gives the sidecars of a hosted control plane the rights of one service account of the guest cluster. Without it, they
// have those of a cluster administrator.
//
// It alone reads the kubeconfig of the administrator, which HyperShift makes. With it, it asks the API of the guest for a token of the service
// account (TokenRequest, authentication.k8s.io/v1). It writes a kubeconfig for that token into a directory that the sidecars share. It renews the
// token before it expires, and soon after HyperShift replaces the kubeconfig of the administrator. Clients of Kubernetes read a token file again
// within a minute. From version 1.36 on they read a CA file again too. So a sidecar needs no restart.
package guestaccess

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/cinder-csi/cinder-csi/internal/kubeconfig"
)

// Options say whose token is written where.
type Options struct {
	Kubeconfig     string        // of an administrator of the guest
	Namespace      string        // of the service account, in the guest
	ServiceAccount string        // its name
	Dir            string        // of the files kubeconfig, token and ca.crt
	Lifetime       time.Duration // of a token; the API server accepts 10 minutes or more, and may give another
	HTTPEndpoint   string        // the address of /healthz
	Log            *slog.Logger
}

// Bind adds the flags of the command guest-token.
func (o *Options) Bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of an administrator of the guest cluster")
	flags.StringVar(&o.Namespace, "namespace", "", "namespace of the service account, in the guest cluster")
	flags.StringVar(&o.ServiceAccount, "service-account", "", "service account whose token the sidecars use")
	flags.StringVar(&o.Dir, "output-dir", "", "absolute path of the directory for kubeconfig, token and ca.crt")
	flags.DurationVar(&o.Lifetime, "lifetime", time.Hour, "lifetime of a token, at least 10m; it is renewed after four fifths of it")
	flags.StringVar(&o.HTTPEndpoint, "http-endpoint", ":8085", "address of /healthz, which succeeds while a valid token is written")
}

const (
	// look is how often the administrator's kubeconfig is read: kubelet brings a Secret up to date about once a minute.
	look = 10 * time.Second
	// After a failed request the next one follows after firstRetry, then after twice the time, up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// Keeper writes the files and keeps them current.
type Keeper struct {
	options Options
	request func(ctx context.Context, k kubeconfig.Config, o Options) (token, error)
	expires atomic.Int64 // when the written token expires, in Unix nanoseconds; 0: nothing is written yet
}

// New returns a keeper. It sends no request. It fails if an option is missing.
func New(o Options) (*Keeper, error) {
	for flag, value := range map[string]string{"--kubeconfig": o.Kubeconfig, "--namespace": o.Namespace, "--service-account": o.ServiceAccount, "--output-dir": o.Dir} {
		if value == "" {
			return nil, fmt.Errorf("%s is not set", flag)
		}
	}
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("--output-dir: %q is not an absolute path; the sidecars read the files by it", o.Dir)
	}
	if o.Lifetime < shortest {
		return nil, fmt.Errorf("--lifetime: %s is less than %s, the shortest that the API server accepts", o.Lifetime, shortest)
	}
	return &Keeper{options: o, request: requestToken}, nil
}

// shortest is the shortest lifetime of a token (Kubernetes API reference, TokenRequestSpec).
const shortest = 10 * time.Minute

// Valid reports whether a token is written that has not expired: the answer of the health endpoint.
func (k *Keeper) Valid() bool { return time.Now().UnixNano() < k.expires.Load() }

// Run keeps the files current until ctx ends. A failed request is logged and tried again; the last token stays in place meanwhile.
func (k *Keeper) Run(ctx context.Context) error {
	var seen [sha256.Size]byte // of the kubeconfig that the written token comes from
	var next time.Time         // of the renewal
	retry := firstRetry
	for {
		text, err := os.ReadFile(k.options.Kubeconfig)
		wait := look
		if sum := sha256.Sum256(text); err == nil && (sum != seen || !time.Now().Before(next)) {
			if next, err = k.renew(ctx, text); err == nil {
				seen, retry = sum, firstRetry
			}
		}
		if err != nil && ctx.Err() == nil {
			k.options.Log.Error("cannot renew the token for the guest cluster; the sidecars keep the present one, and the next attempt follows",
				"serviceAccount", k.options.Namespace+"/"+k.options.ServiceAccount, "expires", k.expiry(), "next", retry.String(), "error", err)
			wait, retry = retry, min(2*retry, lastRetry)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (k *Keeper) expiry() string {
	at := k.expires.Load()
	if at == 0 {
		return "no token yet"
	}
	return time.Unix(0, at).UTC().Format(time.RFC3339)
}

// renew gets a token and writes the files. It returns when the next renewal is due: after four fifths of the lifetime.
func (k *Keeper) renew(ctx context.Context, text []byte) (time.Time, error) {
	admin, err := kubeconfig.Parse(text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", k.options.Kubeconfig, err)
	}
	begin := time.Now()
	t, err := k.request(ctx, admin, k.options)
	if err != nil {
		return time.Time{}, err
	}
	lifetime := t.expires.Sub(begin)
	if lifetime <= 0 {
		return time.Time{}, errors.New("the guest cluster gives a token that has expired already; compare the clocks")
	}
	if err := k.write(admin, t); err != nil {
		return time.Time{}, err
	}
	k.expires.Store(t.expires.UnixNano())
	k.options.Log.Info("wrote a token for the guest cluster", "serviceAccount", k.options.Namespace+"/"+k.options.ServiceAccount, "expires", k.expiry())
	return begin.Add(lifetime / 5 * 4), nil
}

// write replaces the files. The kubeconfig comes last: a sidecar that finds it finds the others too.
func (k *Keeper) write(admin kubeconfig.Config, t token) error {
	for _, f := range []struct {
		name string
		text []byte
	}{{"ca.crt", admin.CA}, {"token", []byte(t.text)}, {"kubeconfig", forToken(admin, k.options.Dir)}} {
		if err := replace(filepath.Join(k.options.Dir, f.name), f.text); err != nil {
			return fmt.Errorf("write the access to the guest cluster: %w", err)
		}
	}
	return nil
}

// replace writes a file so that no reader finds half of it. A file that has the text already is left alone.
func replace(path string, text []byte) error {
	if was, err := os.ReadFile(path); err == nil && string(was) == string(text) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
