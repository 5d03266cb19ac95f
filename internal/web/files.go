package web

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"strings"

	g "maragu.dev/gomponents"
	"maragu.dev/gomponents/html"

	"lockcheck/internal/runs"
	"lockcheck/reports"
)

// form says how a file is sent to a browser.
type form struct {
	kind     string // media type
	policy   string
	download bool // saved instead of shown
}

// formOf decides by the name within the folder. Only the pages that lockcheck makes with scripts may run
// scripts. Everything else that a browser could take for a page is sent as text.
func formOf(name string) form {
	switch name {
	case runs.ReportFile, runs.PorcupineFile:
		return form{"text/html; charset=utf-8", reportPolicy, false}
	}
	switch path.Ext(name) {
	case ".html":
		return form{"text/html; charset=utf-8", stillPolicy, false}
	case ".json":
		return form{"application/json", filePolicy, false}
	case ".log", ".txt", ".yaml", ".xml", ".md", ".csv":
		return form{"text/plain; charset=utf-8", filePolicy, false}
	}
	return form{"application/octet-stream", filePolicy, true}
}

// files sends a file of a run or a comparison, or the contents of a run's folder. Addresses are the paths of
// the store, so that links within its pages work.
func (h *handler) files(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("path")
	if folder, isFolder := strings.CutSuffix(name, "/"); isFolder {
		h.folder(w, folder)
		return
	}
	folder, rest, ok := h.store.home(name)
	if ok && rest == "" {
		http.Redirect(w, r, address("files", folder)+"/", http.StatusSeeOther)
		return
	}
	if !ok || !h.file(w, r, folder, rest) {
		missing(w)
	}
}

// file sends a file of a folder, without following links out of the folder. It returns false if there is no
// such file.
func (h *handler) file(w http.ResponseWriter, r *http.Request, folder, name string) bool {
	root, err := h.store.root.OpenRoot(folder)
	if err != nil {
		return false
	}
	defer root.Close()
	file, info, err := openFile(root, name)
	if err != nil {
		return false
	}
	defer file.Close()
	form := formOf(name)
	w.Header().Set("Content-Type", form.kind)
	w.Header().Set("Content-Security-Policy", form.policy)
	if form.download {
		w.Header().Set("Content-Disposition", attachment(path.Base(name)))
	}
	http.ServeContent(w, r, "", info.ModTime(), file)
	return true
}

func attachment(name string) string {
	return mime.FormatMediaType("attachment", map[string]string{"filename": name})
}

// folder shows a run and its files.
func (h *handler) folder(w http.ResponseWriter, folder string) {
	if !h.store.isRun(folder) {
		missing(w)
		return
	}
	var rows g.Group
	err := h.store.eachFile(folder, func(_ *os.Root, name string, info fs.FileInfo) error {
		note := g.If(formOf(name).download, g.Group{g.Text(" "), reports.Soft("(download)")})
		rows = append(rows, html.Tr(html.Td(link(address("files", folder, name), name), note), cell("number", sizeOf(info.Size()))))
		return nil
	})
	if err != nil {
		tell(w, http.StatusInternalServerError, "The folder of the run cannot be read: "+err.Error()+".")
		return
	}
	r := h.store.refresh(folder, known{}).run
	fact := func(name, value string) g.Node { return reports.FactItem(name, cmp.Or(value, "–")) }
	write(w, http.StatusOK, "A run",
		html.Header(trail(), html.P(badge(r.Verdict)), html.H1(reports.CleanText(r.said())),
			html.Dl(html.Class("run"), fact("lock", r.Lock), fact("workload", r.Workload), fact("guard", r.Guard),
				fact("faults", strings.Join(r.faults(), ", ")), fact("started (UTC)", timeOf(r.Started)), fact("folder", folder)),
			html.P(html.Class("links"), links(link(h.report(r), "Report"), link(r.download(), "Download everything")))),
		html.Main(reports.Section("Files", table("", heads("Name", "Size"), rows))))
}

// eachFile visits the files of a folder and its subfolders. It skips links.
func (s *Store) eachFile(folder string, do func(root *os.Root, name string, info fs.FileInfo) error) error {
	root, err := s.root.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return do(root, name, info)
	})
}

// download sends a run as an archive, generated while it is sent.
func (h *handler) download(w http.ResponseWriter, r *http.Request) {
	folder := r.PathValue("path")
	if !h.store.isRun(folder) {
		missing(w)
		return
	}
	name := strings.ReplaceAll(folder, "/", "-")
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Content-Disposition", attachment(name+".tar.gz"))
	if r.Method == http.MethodHead {
		return
	}
	if err := h.store.archive(w, folder, name); err != nil {
		// The answer has begun, so only a broken connection can signal that it is incomplete.
		panic(http.ErrAbortHandler)
	}
}

// archive writes the files of a run as a compressed tar archive, in a folder of the given name.
func (s *Store) archive(w io.Writer, folder, name string) error {
	compressed := gzip.NewWriter(w)
	packed := tar.NewWriter(compressed)
	err := s.eachFile(folder, func(root *os.Root, file string, _ fs.FileInfo) error {
		return pack(packed, root, file, path.Join(name, file))
	})
	if err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

// pack adds a file to an archive with its current length, because a file of a run in progress may grow.
func pack(packed *tar.Writer, root *os.Root, name, as string) error {
	file, info, err := openFile(root, name)
	if err != nil {
		return err
	}
	defer file.Close()
	header := &tar.Header{Typeflag: tar.TypeReg, Name: as, Size: info.Size(), Mode: 0o644, ModTime: info.ModTime()}
	if err := packed.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.CopyN(packed, file, info.Size())
	return err
}
