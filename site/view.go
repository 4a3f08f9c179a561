package main

import (
	"html/template"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// group is a heading of the navigation with its pages.
type group struct {
	Title string
	items []*item
}

type item struct {
	title string
	page  *page
}

// navigation reads the order of the pages from the lists of a page: each heading is a group,
// and the first link of each list item is a page.
func (s *site) navigation(source string) (groups []group) {
	p, is := s.pages[source]
	if !is {
		s.fail(&page{source: source}, "the page does not exist")
		return nil
	}
	for n := p.document.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 2 {
				groups = append(groups, group{Title: plain(n, p.text)})
			}
		case *ast.List:
			for entry := n.FirstChild(); entry != nil; entry = entry.NextSibling() {
				item := s.entry(p, entry)
				if item == nil || len(groups) == 0 {
					s.fail(p, "no page in the list item %q", plain(entry, p.text))
					continue
				}
				last := &groups[len(groups)-1]
				last.items = append(last.items, item)
			}
		}
	}
	return groups
}

// entry returns the page to which the first link of a list item leads.
func (s *site) entry(p *page, n ast.Node) (found *item) {
	_ = ast.Walk(n, func(n ast.Node, _ bool) (ast.WalkStatus, error) {
		l, is := n.(*ast.Link)
		if !is {
			return ast.WalkContinue, nil
		}
		name := path.Join(path.Dir(p.target), string(l.Destination))
		for _, to := range s.pages {
			if to.target == name {
				found = &item{plain(l, p.text), to}
			}
		}
		return ast.WalkStop, nil
	})
	return found
}

// view is what the layout shows.
type view struct {
	Language, Title, Root string
	// Other is the link to the page in the other language, if there is one.
	Other          string
	Groups         []viewGroup
	Here           string // the group of the page
	Head, Body     template.HTML
	Sections       []section
	Previous, Next *viewItem
	Labels         map[string]string
}

type viewGroup struct {
	Title string
	Items []viewItem
}

type viewItem struct {
	Title, Link   string
	Current, Here bool
	English       bool
}

func (s *site) view(p *page, groups []group) view {
	v := view{
		Language: language(p), Title: p.title, Root: strings.Repeat("../", strings.Count(p.target, "/")),
		Head: p.head, Body: p.body, Labels: labels(language(p)),
	}
	other := translation(p.source)
	if p.chinese() {
		other = strings.TrimSuffix(p.source, chinese+".md") + ".md"
	}
	if to, is := s.pages[other]; is {
		v.Other = relative(p.target, to.target)
	}
	for i := range p.sections {
		if p.sections[i].Level == 2 {
			v.Sections = append(v.Sections, section{ID: p.sections[i].ID, Title: p.sections[i].Title})
		}
	}
	var last *viewItem
	passed := false
	for _, g := range groups {
		shown := viewGroup{Title: g.Title}
		for _, i := range g.items {
			entry := viewItem{
				Title: i.title, Link: relative(p.target, i.page.target), Current: i.page == p,
				English: p.chinese() && !i.page.chinese(),
			}
			// A page that the navigation does not list belongs to the list of its directory.
			entry.Here = entry.Current || path.Base(i.page.target) == "index.html" && path.Dir(p.target) == path.Dir(i.page.target) &&
				path.Dir(p.target) != "." && path.Dir(p.target) != "docs"
			if entry.Here {
				v.Here = g.Title
			}
			shown.Items = append(shown.Items, entry)
			if passed && v.Next == nil {
				v.Next = &entry
			}
			if entry.Current {
				v.Previous, passed = last, true
			}
			last = &entry
		}
		v.Groups = append(v.Groups, shown)
	}
	return v
}

func language(p *page) string {
	if p.chinese() {
		return "zh-CN"
	}
	return "en"
}

// labels are the words of the layout.
func labels(language string) map[string]string {
	if language == "en" {
		return map[string]string{
			"contents": "All pages", "search": "Search", "other": "中文", "code": "zh-CN", "onpage": "On this page", "previous": "Previous",
			"next": "Next", "copy": "Copy", "copied": "Copied", "none": "Nothing found", "skip": "Skip to the text", "home": "index.html",
		}
	}
	return map[string]string{
		"contents": "全部页面", "search": "搜索", "other": "English", "code": "en", "onpage": "本页内容", "previous": "上一页",
		"next": "下一页", "copy": "复制", "copied": "已复制", "none": "没有结果", "skip": "跳到正文", "home": "index.zh-CN.html",
	}
}
