// Marks the program's web view as controlled by automation, so that
// WebKitWebDriver can drive the real window. Loaded by LD_PRELOAD in the smoke
// test only.
#define _GNU_SOURCE
#include <webkit2/webkit2.h>

static WebKitWebView *the_view;

static WebKitWebView *automated_view(WebKitAutomationSession *session, gpointer data) { return the_view; }

static void started(WebKitWebContext *context, WebKitAutomationSession *session, gpointer data) {
	WebKitApplicationInfo *info = webkit_application_info_new();
	webkit_application_info_set_name(info, "slipway-desktop");
	webkit_application_info_set_version(info, 1, 0, 0);
	webkit_automation_session_set_application_info(session, info);
	webkit_application_info_unref(info);
	g_signal_connect(session, "create-web-view", G_CALLBACK(automated_view), NULL);
}

GtkWidget *webkit_web_view_new_with_user_content_manager(WebKitUserContentManager *manager) {
	WebKitWebContext *context = webkit_web_context_get_default();
	webkit_web_context_set_automation_allowed(context, TRUE);
	g_signal_connect(context, "automation-started", G_CALLBACK(started), NULL);
	the_view = WEBKIT_WEB_VIEW(g_object_new(WEBKIT_TYPE_WEB_VIEW, "user-content-manager", manager,
		"is-controlled-by-automation", TRUE, NULL));
	return GTK_WIDGET(the_view);
}
