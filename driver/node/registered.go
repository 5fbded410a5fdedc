package node

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
)

// kubelet calls NodeGetInfo once, when the registrar starts with the pod, and not again when only the container of the driver restarts. So the
// driver keeps a file that lives as long as the pod. Without the file a restarted driver could not know that it is registered.

// wasRegistered reports whether kubelet called an earlier process of this pod.
func wasRegistered(file string) bool {
	if file == "" {
		return false
	}
	_, err := os.Stat(file)
	return err == nil
}

// noteRegistered writes the file. It is empty, so a half-written one is as good.
func noteRegistered(file string, log *slog.Logger) {
	if file == "" {
		return
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		log.Warn("cannot note that kubelet has registered the driver; after a restart of this container the metric says that it has not", "file", file, "error", err)
	}
}
