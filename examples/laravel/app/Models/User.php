<?php

declare(strict_types=1);

namespace App\Models;

use Illuminate\Foundation\Auth\User as Authenticatable;

/**
 * @property int $id
 * @property string $name
 */
final class User extends Authenticatable
{
    public $timestamps = false;

    /** @var list<string> */
    protected $fillable = ['name', 'password'];

    /** @var list<string> */
    protected $hidden = ['password', 'remember_token'];
}
