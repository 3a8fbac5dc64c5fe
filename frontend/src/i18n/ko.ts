import agents from './ko/agents.json'
import apps from './ko/apps.json'
import common from './ko/common.json'
import gpus from './ko/gpus.json'
import history from './ko/history.json'
import launcher from './ko/launcher.json'
import notifications from './ko/notifications.json'
import session from './ko/session.json'
import sessions from './ko/sessions.json'
import settings from './ko/settings.json'
import terminal from './ko/terminal.json'
import usage from './ko/usage.json'

export const ko = { agents, apps, common, gpus, history, launcher, notifications, session, sessions, settings, terminal, usage }
