package controller

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// storageClass reads the parameters of the StorageClass. A strict driver refuses unknown parameters, except those that a newer sidecar may add;
// otherwise the driver logs each of them once.
func (s *Server) storageClass(ctx context.Context, parameters map[string]string) (contract.StorageClass, error) {
	class, unknown, err := contract.ParseStorageClass(parameters)
	if err != nil {
		return class, volume.Errorf(volume.InvalidArgument, "StorageClass: %w", err)
	}
	return class, s.checkUnknown(ctx, "StorageClass", unknown, contract.StorageClassKeys)
}

// snapshotClass reads the parameters of the VolumeSnapshotClass, by the rules of storageClass.
func (s *Server) snapshotClass(ctx context.Context, parameters map[string]string) (contract.SnapshotClass, error) {
	class, unknown, err := contract.ParseSnapshotClass(parameters)
	if err != nil {
		return class, volume.Errorf(volume.InvalidArgument, "VolumeSnapshotClass: %w", err)
	}
	return class, s.checkUnknown(ctx, "VolumeSnapshotClass", unknown, contract.SnapshotClassKeys)
}

// attributesClass reads the parameters of a VolumeAttributesClass. Unknown ones are always errors.
func attributesClass(parameters map[string]string) (contract.AttributesClass, error) {
	class, err := contract.ParseAttributesClass(parameters)
	if err != nil {
		return class, volume.Errorf(volume.InvalidArgument, "VolumeAttributesClass: %w", err)
	}
	return class, nil
}

// checkUnknown refuses or logs unknown parameters of a class of that kind. Known are the names that the kind has.
func (s *Server) checkUnknown(ctx context.Context, kind string, unknown, known []string) error {
	for _, key := range unknown {
		hint := ""
		if near, ok := contract.Nearest(key, known); ok {
			hint = "; did you mean " + near + "?"
		}
		if s.o.Strict && !contract.FromSidecar(key) {
			return volume.Errorf(volume.InvalidArgument, "the %s has the unknown parameter %q%s", kind, key, hint)
		}
		s.tolerate(ctx, "unknown parameter", kind+" "+key, "the driver ignores an unknown parameter of a "+kind+hint, "parameter", key)
	}
	return nil
}

// tolerate counts something that a strict driver refuses, and logs it once for each key.
func (s *Server) tolerate(ctx context.Context, what, key, message string, attributes ...any) {
	if s.o.Lenient != nil {
		s.o.Lenient(what)
	}
	if s.warnings.first(what + " " + key) {
		for i, a := range attributes {
			if text, ok := a.(string); ok {
				attributes[i] = fmt.Sprintf("%.*s", longestText, text)
			}
		}
		s.o.Log.WarnContext(ctx, message, attributes...)
	}
}

// warnings remembers which warnings were logged, by their hashes: who writes a request chooses how long a name is. Keys name volumes, which come and
// go, so at mostWarnings it starts from empty.
type warnings struct {
	mu   sync.Mutex
	keys map[[sha256.Size]byte]bool
}

const mostWarnings = 1000

// longestText is the most letters of an attribute of a warning: a request names a volume or a parameter with up to a megabyte.
const longestText = 512

// first reports whether this is the first call with that key.
func (w *warnings) first(text string) bool {
	key := sha256.Sum256([]byte(text))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys[key] {
		return false
	}
	if w.keys == nil || len(w.keys) >= mostWarnings {
		w.keys = map[[sha256.Size]byte]bool{}
	}
	w.keys[key] = true
	return true
}
