// Command workload is what the test pods run, in an image that has nothing else.
//
//	workload wait                  until SIGTERM
//	workload write FILE SEED MIB [AT]
//	                               writes that many MiB, made from the seed, from MiB AT on, and syncs; FILE may be a block device
//	workload sum FILE MIB [AT]     prints the SHA-256 of MIB MiB from MiB AT on
//	workload size FILE             prints the bytes of a block device, or of the file system that holds the file
//	workload append FILE WRITER    appends numbered lines until SIGTERM, each synced
//	workload print FILE            prints the file
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "workload:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "wait":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
		<-signals
		return nil
	case (len(args) == 4 || len(args) == 5) && args[0] == "write":
		return write(args[1], args[2], args[3:])
	case (len(args) == 3 || len(args) == 4) && args[0] == "sum":
		return sum(args[1], args[2:])
	case len(args) == 2 && args[0] == "size":
		return size(args[1])
	case len(args) == 3 && args[0] == "append":
		return appendLines(args[1], args[2])
	case len(args) == 2 && args[0] == "print":
		return printFile(args[1])
	}
	return fmt.Errorf("unknown command %q", args)
}

// extent is how many bytes, and from which on: SIZE [AT] in MiB.
func extent(args []string) (size, at int64, err error) {
	if size, err = strconv.ParseInt(args[0], 10, 64); err == nil && len(args) > 1 {
		at, err = strconv.ParseInt(args[1], 10, 64)
	}
	return size << 20, at << 20, err
}

func write(file, seed string, where []string) error {
	size, at, err := extent(where)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.CopyN(f, rand.NewChaCha8(sha256.Sum256([]byte(seed))), size); err != nil {
		return err
	}
	return f.Sync()
}

func sum(file string, where []string) error {
	size, at, err := extent(where)
	if err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.CopyN(hash, f, size); err != nil {
		return err
	}
	fmt.Printf("%x\n", hash.Sum(nil))
	return nil
}

func size(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return err
	}
	if stat.Mode().Type() == os.ModeDevice {
		end, err := f.Seek(0, io.SeekEnd)
		fmt.Println(end)
		return err
	}
	var fs syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &fs); err != nil {
		return err
	}
	fmt.Println(int64(fs.Blocks) * fs.Bsize)
	return nil
}
