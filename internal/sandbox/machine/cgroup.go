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

// cgroupRoot holds the mounted hierarchies.
const cgroupRoot = "/sys/fs/cgroup"

// emptiedWithin bounds how long the kernel may take to let go of a machine's processes.
const emptiedWithin = 10 * time.Second

// hierarchy is a tree of cgroups, as it is mounted below cgroupRoot.
type hierarchy struct {
	// Mount is a folder, Options its controllers: those of v1, none for v2.
	Mount, Options string
	// Own is the folder of the cgroup that this process is in.
	Own string
	// Alone reports that this is v2 with all controllers, and the only hierarchy. Its groups
	// follow other rules; see unified.go.
	Alone bool
	// readOnly reports that no group can be made in it.
	readOnly bool
}

func (c hierarchy) controllers() []string { return strings.Split(c.Options, ",") }

// hierarchies returns the mounted hierarchies, with the group of this process in each. If v2 is
// mounted at cgroupRoot, it is the only one: kubelet and runc look for no other there.
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
		path, err := below(root, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Mount, err)
		}
		c.Own = filepath.Join(h.Root, c.Mount, path)
		if c.Alone {
			return []hierarchy{c}, nil
		}
		found = append(found, c)
	}
	if len(found) == 0 {
		return nil, errors.New("none is mounted under " + cgroupRoot)
	}
	return found, nil
}

// below returns the path of a group below the root of a mount, which in a container may be
// another group than the root of the hierarchy.
//
// Errors: the group is not visible there.
func below(root, path string) (string, error) {
	if path == "/.." || strings.HasPrefix(path, "/../") {
		return "", fmt.Errorf("this process is in group %s, which is outside of its cgroup namespace", path)
	}
	if root == "/.." || strings.HasPrefix(root, "/../") {
		return "", errors.New("it was mounted in another cgroup namespace; mount it again in this one")
	}
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return "", fmt.Errorf("this process is in group %s, but only %s is mounted", path, root)
	}
	return rest, nil
}

// parseMount reads a line of mountinfo, and returns false if it is of no cgroups.
func parseMount(line string) (c hierarchy, root string, ok bool) {
	before, after, found := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !found || len(left) < 6 || len(right) < 3 || !strings.HasPrefix(left[4], cgroupRoot) {
		return c, "", false
	}
	c.Mount = left[4]
	c.readOnly = slices.Contains(strings.Split(left[5], ","), "ro") || slices.Contains(strings.Split(right[2], ","), "ro")
	switch right[0] {
	case "cgroup2":
		c.Alone = c.Mount == cgroupRoot
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

// dirs are the folders of the group, one of each hierarchy.
func (g group) dirs() []string {
	dirs := make([]string, len(g.all))
	for i, c := range g.all {
		dirs[i] = g.dir(c)
	}
	return dirs
}

// make makes the group where it is missing.
func (g group) make() error {
	for _, c := range g.all {
		if c.Alone {
			if err := makeUnified(c.Own, g.name); err != nil {
				return fmt.Errorf("make cgroup: %w", err)
			}
			continue
		}
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
func (g group) remove() error { return removeTrees(g.dirs()) }

func removeTrees(dirs []string) error {
	var err error
	for end := time.Now().Add(emptiedWithin); ; time.Sleep(10 * time.Millisecond) {
		err = nil
		for _, dir := range dirs {
			err = errors.Join(err, removeTree(dir))
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
