package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
)

// profile writes profiles of this process into dir: cpu.prof, whose samples have
// the side as a label, and at the end allocs, mutex and block. Profiling costs time
// itself, so the results of such a run show proportions only.
func profile(dir string) (end func() error, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	cpu, err := os.Create(filepath.Join(dir, "cpu.prof"))
	if err != nil {
		return nil, fmt.Errorf("write profile: %w", err)
	}
	runtime.SetMutexProfileFraction(10)
	runtime.SetBlockProfileRate(10_000) // a sample for each 10 µs
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(fmt.Errorf("begin profile: %w", err), cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		err := cpu.Close()
		for _, name := range []string{"allocs", "mutex", "block"} {
			err = errors.Join(err, one(dir, name))
		}
		return err
	}, nil
}

func one(dir, name string) error {
	f, err := os.Create(filepath.Join(dir, name+".prof"))
	if err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return errors.Join(pprof.Lookup(name).WriteTo(f, 0), f.Close())
}
