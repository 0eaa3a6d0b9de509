// Finds the site by its name and pages as the built-in web server does: /about/ is about/index.html, hidden names are
// not there. A name without a dot is taken for a folder, since the edge cannot look.
//   kiln.DOMAIN -> /kiln/public, kiln.edit.DOMAIN -> /kiln/edit
//   t-0123456789abcdef--kiln.edit.DOMAIN -> /.previews/kiln/t-0123456789abcdef, the preview of a conversation
function handler(event) {
    var request = event.request;
    var path;
    try {
        path = decodeURIComponent(request.uri);
    } catch (problem) {
        return answer(404, 'Not Found');
    }
    var folder = site(request.headers.host ? request.headers.host.value.toLowerCase() : '');
    if (folder === '') {
        return answer(404, 'Not Found');
    }
    var names = path.split('/');
    for (var i = 0; i < names.length; i++) {
        if (names[i].charAt(0) === '.' && names[i] !== '.well-known') {
            return answer(404, 'Not Found');
        }
    }
    var last = names[names.length - 1];
    if (last === '') {
        request.uri += 'index.html';
    } else if (last.indexOf('.') < 0 && names.indexOf('.well-known') < 0) {
        var moved = answer(308, 'Permanent Redirect');
        // A second slash would name another host.
        moved.headers.location = { value: request.uri.replace(/^\/+/, '/') + '/' + asked(request.querystring) };
        return moved;
    }
    request.uri = folder + request.uri;
    return request;
}

function site(host) {
    var ending = '.DOMAIN';
    if (host.slice(-ending.length) !== ending) {
        return '';
    }
    var name = host.slice(0, -ending.length);
    var found = /^([a-z0-9-]{1,32})$/.exec(name);
    if (found) {
        return '/' + found[1] + '/public';
    }
    found = /^(t-[0-9a-f]{16})--([a-z0-9-]{1,32})\.edit$/.exec(name);
    if (found) {
        return '/.previews/' + found[2] + '/' + found[1];
    }
    found = /^([a-z0-9-]{1,32})\.edit$/.exec(name);
    return found ? '/' + found[1] + '/edit' : '';
}

function answer(code, words) {
    return { statusCode: code, statusDescription: words, headers: { 'cache-control': { value: 'no-cache' } } };
}

function asked(query) {
    var parts = [];
    for (var name in query) {
        var values = query[name].multiValue || [query[name]];
        for (var i = 0; i < values.length; i++) {
            parts.push(values[i].value === '' ? name : name + '=' + values[i].value);
        }
    }
    return parts.length ? '?' + parts.join('&') : '';
}
