package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// cgroupRoot is where hierarchies are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// emptiedWithin bounds how long the kernel may take to let go of a machine's processes.
const emptiedWithin = 10 * time.Second

// hierarchy is a tree of cgroups, as it is mounted below cgroupRoot.
type hierarchy struct {
	// Mount is where, Options with what: the controllers of v1, nothing for v2.
	Mount, Options string
	// Own is the folder of the cgroup that this process is in.
	Own string
}

func (c hierarchy) controllers() []string { return strings.Split(c.Options, ",") }

// unified returns true if cgroup v2 is all there is.
func unified(all []hierarchy) bool { return len(all) == 1 && all[0].Mount == cgroupRoot }

// hierarchies finds what is mounted, and where in it this process is.
func (h Host) hierarchies() ([]hierarchy, error) {
	own := map[string]string{} // by controllers
	for line := range strings.Lines(h.read("/proc/self/cgroup")) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 {
			own[parts[1]] = parts[2]
		}
	}
	var found []hierarchy
	for line := range strings.Lines(h.read("/proc/self/mountinfo")) {
		c, root, ok := parseMount(line)
		if !ok || slices.ContainsFunc(found, func(other hierarchy) bool { return other.Mount == c.Mount }) {
			continue
		}
		path, ok := own[c.Options]
		if !ok {
			return nil, fmt.Errorf("%s is mounted, but this process is in none of it", c.Mount)
		}
		// In a container the mount may begin where the process is.
		if root != "/" {
			path = strings.TrimPrefix(path, root)
		}
		c.Own = filepath.Join(h.Root, c.Mount, path)
		found = append(found, c)
	}
	if len(found) == 0 {
		return nil, errors.New("none is mounted under " + cgroupRoot)
	}
	return found, nil
}

// parseMount reads a line of mountinfo, and returns false if it is of no cgroups.
func parseMount(line string) (c hierarchy, root string, ok bool) {
	before, after, found := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !found || len(left) < 5 || len(right) < 3 || !strings.HasPrefix(left[4], cgroupRoot) {
		return c, "", false
	}
	c.Mount = left[4]
	switch right[0] {
	case "cgroup2":
		return c, left[3], true
	case "cgroup":
		options := slices.DeleteFunc(strings.Split(right[2], ","), func(option string) bool {
			return slices.Contains([]string{"rw", "ro", "xattr", "clone_children"}, option) || strings.HasPrefix(option, "release_agent=")
		})
		c.Options = strings.Join(options, ",")
		return c, left[3], true
	default:
		return c, "", false
	}
}

// group is a cgroup of the same name in every hierarchy.
type group struct {
	all  []hierarchy
	name string
}

// below is the group of a name in this one.
func (g group) below(name string) group { return group{g.all, filepath.Join(g.name, name)} }

func (g group) dir(c hierarchy) string { return filepath.Join(c.Own, g.name) }

// make makes the group where it is missing.
func (g group) make() error {
	for _, c := range g.all {
		if err := os.MkdirAll(g.dir(c), 0o755); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
		if slices.Contains(c.controllers(), "cpuset") {
			if err := g.copySets(c); err != nil {
				return fmt.Errorf("make cgroup: %w", err)
			}
		}
	}
	return nil
}

// copySets gives the group the processors and memory nodes of its parents, without which
// a cpuset takes no process.
func (g group) copySets(c hierarchy) error {
	dir := c.Own
	for element := range strings.SplitSeq(g.name, "/") {
		parent := dir
		dir = filepath.Join(dir, element)
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			data, err := os.ReadFile(filepath.Join(parent, file))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, file), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// take moves a process into the group.
func (g group) take(pid int) error {
	for _, c := range g.all {
		if err := os.WriteFile(filepath.Join(g.dir(c), "cgroup.procs"), fmt.Append(nil, pid), 0o644); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	return nil
}

// remove removes the group and all that are in it, as soon as their processes are gone.
//
// Errors: there are still some after emptiedWithin.
func (g group) remove() error {
	var err error
	for end := time.Now().Add(emptiedWithin); ; time.Sleep(10 * time.Millisecond) {
		err = nil
		for _, c := range g.all {
			err = errors.Join(err, removeTree(g.dir(c)))
		}
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// removeTree removes folders of cgroups, whose files go with them.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() {
			err = errors.Join(err, removeTree(filepath.Join(dir, entry.Name())))
		}
	}
	if err != nil {
		return err
	}
	if err := os.Remove(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
