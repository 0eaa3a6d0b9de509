// Finds pages as the built-in web server does: /about/ is about/index.html, hidden names are not there. A name without
// a dot is taken for a folder, since the edge cannot look. The folder of the site is told by `site`, which another file
// adds.
function handler(event) {
    var request = event.request;
    var path;
    try {
        path = decodeURIComponent(request.uri);
    } catch (problem) {
        return answer(404, 'Not Found');
    }
    var folder = site(request.headers.host ? request.headers.host.value.toLowerCase() : '');
    if (folder === null) {
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
