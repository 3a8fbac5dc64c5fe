//go:build desktop && linux

package app

/*
#cgo linux pkg-config: gtk+-3.0 webkit2gtk-4.1
#include <gtk/gtk.h>
#include <webkit2/webkit2.h>

static void hook_view(WebKitWebView *view);

// A page's title is its window's title.
static void title_changed(WebKitWebView *view, GParamSpec *spec, gpointer window) {
	const gchar *title = webkit_web_view_get_title(view);
	if (title != NULL && *title != 0) gtk_window_set_title(GTK_WINDOW(window), title);
}

static void ready_to_show(WebKitWebView *view, gpointer window) { gtk_widget_show_all(GTK_WIDGET(window)); }

static void closed(WebKitWebView *view, gpointer window) { gtk_widget_destroy(GTK_WIDGET(window)); }

// The window asks the page first, so that "leave this page?" is asked.
static gboolean try_close(GtkWidget *window, GdkEvent *event, gpointer view) {
	webkit_web_view_try_close(WEBKIT_WEB_VIEW(view));
	return TRUE;
}

// window.open and target=_blank get a window of their own.
static GtkWidget *create(WebKitWebView *opener, WebKitNavigationAction *action, gpointer data) {
	GtkWidget *view = webkit_web_view_new_with_related_view(opener);
	webkit_web_view_set_zoom_level(WEBKIT_WEB_VIEW(view), webkit_web_view_get_zoom_level(opener));
	GtkWidget *window = gtk_window_new(GTK_WINDOW_TOPLEVEL);
	gtk_window_set_default_size(GTK_WINDOW(window), 1180, 760);
	gtk_container_add(GTK_CONTAINER(window), view);
	g_signal_connect(view, "ready-to-show", G_CALLBACK(ready_to_show), window);
	g_signal_connect(view, "close", G_CALLBACK(closed), window);
	g_signal_connect(view, "notify::title", G_CALLBACK(title_changed), window);
	g_signal_connect(window, "delete-event", G_CALLBACK(try_close), view);
	hook_view(WEBKIT_WEB_VIEW(view));
	return view;
}

static void hook_view(WebKitWebView *view) { g_signal_connect(view, "create", G_CALLBACK(create), NULL); }

// find returns the first web view below a widget.
static GtkWidget *find(GtkWidget *widget) {
	if (WEBKIT_IS_WEB_VIEW(widget)) return widget;
	if (!GTK_IS_CONTAINER(widget)) return NULL;
	GtkWidget *found = NULL;
	GList *below = gtk_container_get_children(GTK_CONTAINER(widget));
	for (GList *at = below; at != NULL && found == NULL; at = at->next) found = find(GTK_WIDGET(at->data));
	g_list_free(below);
	return found;
}

static gboolean hook_all(gpointer data) {
	GList *windows = gtk_window_list_toplevels();
	for (GList *at = windows; at != NULL; at = at->next) {
		GtkWidget *view = find(GTK_WIDGET(at->data));
		if (view == NULL || g_object_get_data(G_OBJECT(view), "slipway-hooked") != NULL) continue;
		g_object_set_data(G_OBJECT(view), "slipway-hooked", GINT_TO_POINTER(1));
		g_signal_connect(view, "notify::title", G_CALLBACK(title_changed), at->data);
		hook_view(WEBKIT_WEB_VIEW(view));
	}
	g_list_free(windows);
	return G_SOURCE_REMOVE;
}

static void hook_soon(void) { g_idle_add(hook_all, NULL); }

static gboolean zoom_all(gpointer percent) {
	GList *windows = gtk_window_list_toplevels();
	for (GList *at = windows; at != NULL; at = at->next) {
		GtkWidget *view = find(GTK_WIDGET(at->data));
		if (view != NULL) webkit_web_view_set_zoom_level(WEBKIT_WEB_VIEW(view), GPOINTER_TO_INT(percent) / 100.0);
	}
	g_list_free(windows);
	return G_SOURCE_REMOVE;
}

static void zoom_soon(int percent) { g_idle_add(zoom_all, GINT_TO_POINTER(percent)); }
*/
import "C"

// installWebViewHooks gives the web views of this process what WebKitGTK leaves to the program: windows for window.open
// and titles that follow the page. It may be called from any goroutine.
func installWebViewHooks() { C.hook_soon() }

// zoomWebViews shows the pages of this process at a size in percent. It may be called from any goroutine.
func zoomWebViews(percent int) { C.zoom_soon(C.int(percent)) }
